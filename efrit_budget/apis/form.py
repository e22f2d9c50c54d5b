"""Put the parts of a request into the form of an endpoint's API."""

from collections.abc import Iterable

from efrit_budget.apis import chat
from efrit_budget.budget.endpoint import Api, Endpoint, Feature
from efrit_budget.conversation.blocks import REASONING
from efrit_budget.conversation.prefix import Offer
from efrit_budget.errors import JsonObject


def put_into_form(answer: JsonObject, endpoint: Endpoint) -> JsonObject:
    """Return a reply of ours with all that is sent to the model as the endpoint takes it.

    Its members are `system` and `tools`, and messages are in `messages`, `rewrite` and `append`.
    """
    formed = dict(answer)
    if endpoint.api is Api.CHAT and "system" in answer:
        formed["system"] = chat.system_messages(answer["system"], endpoint)
        formed["tools"] = [chat.tool(schema) for schema in answer["tools"]]
    for name in ("rewrite", "append"):
        if answer.get(name) is not None:
            formed[name] = {"messages": form_messages(answer[name]["messages"], endpoint)}
    if "messages" in answer:
        formed["messages"] = form_messages(answer["messages"], endpoint)
    return formed


def form_messages(messages: Iterable[JsonObject], endpoint: Endpoint) -> list[JsonObject]:
    """Return messages as the endpoint takes them."""
    if endpoint.api is Api.CHAT:
        return [formed for message in messages for formed in chat.messages(message, endpoint)]
    return [
        {**message, "content": [_for_messages_api(block) for block in message["content"]]}
        for message in messages
    ]


def _for_messages_api(block: JsonObject) -> JsonObject:
    """Return a block without what only replies of the API `chat` have."""
    if chat.SIGNATURE not in block:
        return block
    return {name: value for name, value in block.items() if name != chat.SIGNATURE}


def take_reply(
    blocks: list[JsonObject], endpoint: Endpoint, offers: Iterable[Offer]
) -> list[JsonObject]:
    """Return the blocks of a chat reply as they are stored, with the names of the tools offered.

    Drop what says how reasoning and signatures are sent back if the endpoint does not take them.
    """
    real_names = {chat.tool_name(offer.name): offer.name for offer in offers}
    return [_stored_block(block, endpoint, real_names) for block in blocks]


def _stored_block(block: JsonObject, endpoint: Endpoint, real_names: dict[str, str]) -> JsonObject:
    dropped = {
        REASONING: not endpoint.has(Feature.REASONING_BACK),
        chat.SIGNATURE: not endpoint.has(Feature.THOUGHT_SIGNATURES),
    }
    stored = {name: value for name, value in block.items() if not dropped.get(name)}
    if block["type"] == "tool_use":
        stored["name"] = real_names.get(block["name"], block["name"])
    return stored
