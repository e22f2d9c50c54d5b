"""Conversations as the Chat Completions API takes them."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from tests.apis.conftest import CHAT_MODEL, ChatClient
from tests.conversation.client import Client, text, tool_use

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}


def look_at_an_image(client: Client) -> None:
    """Run a turn in which the model reads an image, and begin the next."""
    (client.root / "dot.png").write_bytes(PIXEL)
    client.begin([text("Look."), IMAGE])
    client.call_tool("read_image", path="dot.png")
    client.begin()


def roles(client: Client) -> list[str]:
    """Return the roles of the messages that the client has."""
    return [message["role"] for message in client.messages]


def with_a_tool(client: Client, *more: dict[str, Any]) -> None:
    """Run a turn with a tool call, and begin the next."""
    client.begin("Look.")
    client.end(*more, tool_use("toolu_first", "eval_sexp", at=1))
    client.record("toolu_first", "It is blue.", arguments={"at": 1})
    client.begin()


def test_the_system_text_is_one_message_without_cache_marks(chat_client: ChatClient) -> None:
    client = chat_client()
    client.begin("Hello.")
    assert client.system == [{"role": "system", "content": "You work in Emacs."}]
    assert client.messages == [{"role": "user", "content": "Hello."}]


def test_where_system_messages_are_called_developer_they_are(chat_client: ChatClient) -> None:
    client = chat_client("developer")
    client.begin("Hello.")
    assert [message["role"] for message in client.system] == ["developer"]


def test_tools_are_functions_with_their_schemas(chat_client: ChatClient) -> None:
    client = chat_client()
    client.begin("Hello.")
    tools = {tool["function"]["name"]: tool for tool in client.tools}
    assert set(tools["file_info"]) == {"type", "function"}
    assert set(tools["file_info"]["function"]) == {"name", "description", "parameters"}
    assert tools["file_info"]["function"]["parameters"]["type"] == "object"


def test_a_result_is_a_tool_message_that_names_its_call(chat_client: ChatClient) -> None:
    client = chat_client()
    with_a_tool(client, text("I look."))
    assert roles(client) == ["user", "assistant", "tool"]
    reply, result = client.messages[1:]
    assert reply["content"] == "I look."
    (call,) = reply["tool_calls"]
    assert call["function"] == {"name": "eval_sexp", "arguments": '{"at": 1}'}
    assert result["tool_call_id"] == call["id"] == "toolu_first"
    assert result["content"].startswith("It is blue.")


def test_each_request_of_an_epoch_extends_the_one_before(chat_client: ChatClient) -> None:
    client = chat_client()
    with_a_tool(client)
    before = list(client.messages)
    client.end(text("Blue."))
    begun = client.begin("Thanks.")
    assert begun["rewrite"] is None
    assert client.messages[: len(before)] == before
    assert roles(client)[len(before) :] == ["assistant", "user"]


def test_the_messages_of_a_session_are_given_in_the_same_form(chat_client: ChatClient) -> None:
    client = chat_client()
    with_a_tool(client)
    held = client.call("session/messages")
    assert held["messages"] == client.messages
    assert held["system"] == client.system
    assert held["tools"] == client.tools


def test_another_endpoint_is_a_rewrite_in_its_form(chat_client: ChatClient) -> None:
    client = chat_client()
    with_a_tool(client)
    client.end(text("Blue."))
    client.request = {}
    begun = client.begin("And now?", model="claude-sonnet-5-5")
    assert begun["rewrite_reasons"] == ["model", "tools"] or "model" in begun["rewrite_reasons"]
    assert [block["type"] for block in client.messages[1]["content"]] == ["tool_use"]
    assert client.system[0]["type"] == "text"


# Reasoning and signatures


THOUGHT = {"type": "thinking", "thinking": "Hm.", "field": "reasoning_content"}


def test_reasoning_goes_back_where_the_endpoint_wants_it(chat_client: ChatClient) -> None:
    client = chat_client("reasoning-back")
    with_a_tool(client, THOUGHT)
    assert client.messages[1]["reasoning_content"] == "Hm."


def test_a_reply_whose_reasoning_is_gone_has_a_blank_in_its_place(
    chat_client: ChatClient,
) -> None:
    client = chat_client("reasoning-back")
    with_a_tool(client, THOUGHT)
    client.end(text("Blue."))
    schema = {"type": "object", "properties": {}}
    tool = {"name": "other", "description": "Do it.", "input_schema": schema}
    client.call("tools/register", tools=[tool])
    assert client.begin("And now?")["rewrite_reasons"] == ["tools"]
    assert client.messages[1]["reasoning_content"] == " "


def test_a_reply_without_tool_calls_has_a_blank_for_its_reasoning_too(
    chat_client: ChatClient,
) -> None:
    client = chat_client("reasoning-back")
    with_a_tool(client)
    client.end(text("Blue."))
    client.begin("And now?")
    assert client.messages[-2]["reasoning_content"] == " "


def test_reasoning_is_kept_and_stays_here_where_it_does_not(chat_client: ChatClient) -> None:
    client = chat_client()
    with_a_tool(client, THOUGHT)
    assert "reasoning_content" not in client.messages[1]
    replies = [one for one in client.call("session/transcript")["turns"] if one["kind"] == "reply"]
    assert replies[0]["content"][0]["thinking"] == "Hm."


def test_a_field_of_a_message_is_never_named_by_the_model(chat_client: ChatClient) -> None:
    client = chat_client("reasoning-back")
    with_a_tool(client, {**THOUGHT, "field": "role"})
    assert client.messages[1]["role"] == "assistant"


SIGNED = {"google": {"thought_signature": "c2ln"}}


def test_the_signature_of_a_call_goes_back_with_it(chat_client: ChatClient) -> None:
    client = chat_client("thought-signatures")
    client.begin("Look.")
    client.end({**tool_use("one", "eval_sexp"), "extra_content": SIGNED}, tool_use("two", "x"))
    client.begin()
    first, second = client.messages[1]["tool_calls"]
    assert first["extra_content"] == SIGNED
    assert "extra_content" not in second


def test_the_first_call_of_another_model_is_marked_as_unsigned(chat_client: ChatClient) -> None:
    client = chat_client("thought-signatures")
    with_a_tool(client)
    (call,) = client.messages[1]["tool_calls"]
    assert "skip_thought_signature_validator" in json.dumps(call["extra_content"])


def test_a_signature_is_sent_to_no_other_endpoint(chat_client: ChatClient) -> None:
    client = chat_client("thought-signatures")
    client.begin("Look.")
    client.end({**tool_use("one", "eval_sexp"), "extra_content": SIGNED})
    client.request = {}
    client.begin(model="claude-sonnet-5-5")
    assert "extra_content" not in json.dumps(client.messages)


# What servers refuse


def test_short_ids_are_nine_letters_and_digits_and_still_pair(chat_client: ChatClient) -> None:
    client = chat_client("short-ids")
    with_a_tool(client)
    (call,) = client.messages[1]["tool_calls"]
    assert re.fullmatch("[a-zA-Z0-9]{9}", call["id"])
    assert client.messages[2]["tool_call_id"] == call["id"]


def test_an_id_longer_than_40_characters_is_shortened_and_still_pairs(
    chat_client: ChatClient,
) -> None:
    client = chat_client()
    client.begin("Look.")
    client.end(tool_use("chatcmpl-tool-" + "0" * 32, "eval_sexp"))
    client.record("chatcmpl-tool-" + "0" * 32, "It is blue.")
    client.begin()
    (call,) = client.messages[1]["tool_calls"]
    assert len(call["id"]) <= 40
    assert client.messages[2]["tool_call_id"] == call["id"]


def test_where_roles_alternate_nothing_of_the_users_follows_a_result(
    chat_client: ChatClient,
) -> None:
    client = chat_client("alternation")
    client.begin("Look.")
    client.end(tool_use("one", "eval_sexp"))
    client.record("one", "It is blue.")
    client.begin("Go on.")
    assert roles(client) == ["user", "assistant", "tool"]
    assert client.messages[-1]["content"].endswith("\n\nGo on.")


def test_where_roles_alternate_a_message_without_reply_is_joined_to_the_next(
    chat_client: ChatClient,
) -> None:
    client = chat_client("alternation")
    client.begin("Look.")
    client.end(aborted=True)
    begun = client.begin("No, wait.")
    assert begun["rewrite_reasons"] == ["order"]
    assert client.messages == [{"role": "user", "content": "Look.\n\nNo, wait."}]


def test_a_long_name_of_a_tool_is_shortened_and_found_again(chat_client: ChatClient) -> None:
    client = chat_client()
    name = "server__" + "x" * 90
    schema = {"type": "object", "properties": {}}
    tool = {"name": name, "description": "Do it.", "input_schema": schema}
    client.call("tools/register", tools=[tool])
    client.begin("Do it.")
    names = [tool["function"]["name"] for tool in client.tools]
    (short,) = [each for each in names if each.startswith("server__")]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", short)
    ended = client.end(tool_use("one", short))
    assert ended["names"] == [name]
    assert client.record("one", "Done.", name=name)["status"] == "success"
    client.begin()
    assert client.messages[1]["tool_calls"][0]["function"]["name"] == short


# Images


@pytest.mark.parametrize("features", [(), ("images", "alternation")])
def test_an_image_is_named_where_the_endpoint_takes_none(
    chat_client: ChatClient, features: tuple[str, ...]
) -> None:
    client = chat_client(*features, configured={"tools.deny": []})
    look_at_an_image(client)
    assert roles(client) == ["user", "assistant", "tool"]
    assert "An image was left out" in client.messages[-1]["content"]


def test_an_image_of_a_result_follows_it_in_a_message(chat_client: ChatClient) -> None:
    client = chat_client("images", configured={"tools.deny": []})
    look_at_an_image(client)
    assert roles(client) == ["user", "assistant", "tool", "user"]
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert client.messages[0]["content"] == [{"type": "text", "text": "Look."}, url]
    (sent,) = client.messages[-1]["content"]
    assert sent["image_url"]["url"].startswith("data:image/png;base64,")


def test_an_unknown_feature_is_refused_by_its_name(chat_client: ChatClient) -> None:
    client = chat_client("telepathy")
    with pytest.raises(Exception, match=r"endpoint\.features\.0"):
        client.begin("Hello.")


# Usage


def test_a_reply_without_usage_has_no_known_price(chat_client: ChatClient) -> None:
    client = chat_client()
    client.begin("Hello.")
    ended = client.end(text("Hello."), usage={})
    assert ended["unreported"] == 1
    assert ended["dollars"] is None


def test_a_model_costs_what_its_provider_takes(chat_client: ChatClient) -> None:
    client = chat_client()
    client.model = "gpt-5"
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    client.request["endpoint"]["provider"] = "openai"
    client.begin("Hello.")
    assert client.end(text("Hi."), usage=usage)["dollars"] == 1.25
    client.request["endpoint"]["provider"] = "my-cellar"
    client.begin("Hello.")
    assert client.end(text("Hi."), usage=usage)["dollars"] is None


def test_the_status_names_model_and_provider_of_the_latest_turn(chat_client: ChatClient) -> None:
    client = chat_client()
    status = client.call("session/status")
    assert (status["model"], status["provider"]) == (None, "")
    client.begin("Hello.")
    client.crash()
    status = client.call("session/status")
    assert (status["model"], status["provider"]) == (CHAT_MODEL, "somewhere")


def test_a_turn_says_whether_the_window_of_its_model_is_known(chat_client: ChatClient) -> None:
    client = chat_client()
    assert client.begin("Hello.")["model"]["window_known"] is True
    del client.request["endpoint"]["window"]
    begun = client.begin("Hello?")
    assert begun["model"]["window_known"] is False
    assert begun["model"]["window"] == 200_000
    (listed,) = client.call("models/list", names=[CHAT_MODEL])["models"]
    assert listed["window_known"] is False
