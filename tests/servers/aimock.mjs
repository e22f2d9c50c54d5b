// Plays fixtures in order with npm's aimock: node aimock.mjs FOLDER FIXTURES
//
// FOLDER has the package; FIXTURES is a JSON file with a list of fixtures. A continuation token in a
// response stands for the last one in the tool results of the request. Prints the URL.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const TOKEN = /\br[1-9]\d*:\d+-[0-9a-f]{4}\b/g;

const [folder, file] = process.argv.slice(2);
const entry = join(folder, "node_modules/@copilotkit/aimock/dist/index.js");
const { LLMock } = await import(pathToFileURL(entry).href);

function fill(response, request) {
  const results = request.messages.filter((message) => message.role === "tool");
  const token = JSON.stringify(results).match(TOKEN)?.at(-1);
  const text = JSON.stringify(response);
  return JSON.parse(token ? text.replace(TOKEN, token) : text);
}

const mock = new LLMock({ port: 0, host: "127.0.0.1", strict: true });
JSON.parse(readFileSync(file, "utf8")).forEach(({ response, ...options }, index) =>
  mock.addFixture({
    ...options,
    match: { endpoint: "chat", sequenceIndex: index },
    response: (request) => fill(response, request),
  }),
);
console.log(await mock.start());
