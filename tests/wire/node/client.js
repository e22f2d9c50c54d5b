// Drives the sidecar through vscode-jsonrpc and prints what it saw as one JSON object.
//
// Usage: node client.js PROJECT COMMAND...

"use strict";

const { spawn } = require("node:child_process");
const rpc = require("vscode-jsonrpc/node");

const [project, command, ...rest] = process.argv.slice(2);
const seen = { progress: [], stderr: "" };
const sidecar = spawn(command, rest, { stdio: ["pipe", "pipe", "pipe"] });
sidecar.stderr.on("data", (data) => { seen.stderr += data; });
const ended = new Promise((resolve) => sidecar.on("exit", (code) => resolve(code)));

const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(sidecar.stdout),
  new rpc.StreamMessageWriter(sidecar.stdin),
);
connection.onNotification("$/progress", (params) => { seen.progress.push(params); });
connection.onError(([error]) => { seen.error = String(error); });
connection.onUnhandledNotification((message) => { seen.unhandled = message; });
connection.listen();

function call(session, name, args, use, token) {
  const params = { session_id: session, name, arguments: args, tool_use_id: use };
  return connection.sendRequest("tools/call", params, ...(token ? [token] : []));
}

async function failure(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { code: error.code, message: error.message, data: error.data ?? null };
  }
}

async function main() {
  seen.initialize = await connection.sendRequest("initialize", {
    processId: process.pid, rootUri: null, capabilities: {}, clientInfo: { name: "node" },
  });
  await connection.sendNotification("initialized", {});
  seen.session = await connection.sendRequest("session/open", { root: project });
  const session = seen.session.session_id;
  seen.file = await call(session, "file_info", { paths: ["a.txt"] }, "use-file");
  seen.waited = await call(session, "wait", { seconds: 1.2 }, "use-wait");
  const source = new rpc.CancellationTokenSource();
  const long = failure(call(session, "wait", { seconds: 600 }, "use-long", source.token));
  source.cancel();
  seen.cancelled = await long;
  seen.unknown = await failure(connection.sendRequest("no/such/method", {}));
  seen.invalid = await failure(connection.sendRequest("session/status", { session: 1 }));
  seen.positional = await connection.sendRequest(
    "session/status", rpc.ParameterStructures.byPosition, session,
  );
  const many = Array.from({ length: 50 }, () => connection.sendRequest("ping"));
  seen.many = await Promise.all(many);
  seen.shutdown = await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  seen.code = await ended;
}

const work = main();
const watch = ended.then((code) => {
  if ("shutdown" in seen) {
    return work;
  }
  throw new Error(`the sidecar ended with code ${code}: ${seen.stderr}`);
});

Promise.race([work, watch])
  .catch((error) => { seen.failure = String(error.stack); sidecar.kill(); })
  .finally(() => {
    connection.dispose();
    process.stdout.write(JSON.stringify(seen), () => process.exit(0));
  });
