"""The switches that make the endpoint as strict as some servers are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.demo.strict import STRICT
from tests.demo.chatting import (
    ASKED,
    READ_FILE,
    call,
    chat,
    chat_calls,
    post,
    result,
    said,
)
from tests.demo.conftest import Play
from tests.demo.running import TOOL, Block, Endpoint, request, text, user
from tests.demo.test_chat_refusals import DEVELOPER, SYSTEM, picture

PAGE = Path(__file__).resolve().parents[2] / "docs" / "demo-model.md"
CALLED = (ASKED, said(None, tool_calls=[call("abcdefgh1")]), result("abcdefgh1"))
LONG = (ASKED, said(None, tool_calls=[call("call_1")]), result("call_1"))
PART: Block = {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
EMPTY_PART: Block = {"role": "user", "content": [{"type": "text", "text": ""}]}
REASONED = chat(ASKED, said(reasoning_content="Hm."), ASKED)

CHAT: dict[str, tuple[list[Block], list[tuple[Block, str]]]] = {
    "alternation": (
        [chat(SYSTEM, ASKED), chat(*CALLED), chat(*CALLED, said(), ASKED)],
        [
            (chat(ASKED, ASKED), "Unexpected role 'user' after role 'user'"),
            (chat(*CALLED, ASKED), "Unexpected role 'user' after role 'tool'"),
            (chat(ASKED, said(), said(), ASKED), "'assistant' after role 'assistant'"),
            (chat(ASKED, SYSTEM), "Unexpected role 'system' after role 'user'"),
            (chat(said(), ASKED), "Unexpected role 'assistant' after role ''"),
            (chat(ASKED, said()), "Expected last role User or Tool for serving but got assistant"),
        ],
    ),
    "no-system-later": (
        [chat(SYSTEM, ASKED), chat(DEVELOPER, ASKED)],
        [
            (chat(SYSTEM, SYSTEM, ASKED), "System message must be at the beginning."),
            (chat(ASKED, DEVELOPER), "System message must be at the beginning."),
        ],
    ),
    "developer": (
        [chat(DEVELOPER, ASKED)],
        [(chat(ASKED, SYSTEM), "'messages[1].role' does not support 'system' with this model.")],
    ),
    "no-developer": (
        [chat(SYSTEM, ASKED)],
        [(chat(DEVELOPER, ASKED), "messages[0].role: unknown variant `developer`")],
    ),
    "short-ids": (
        [chat(*CALLED)],
        [(chat(*LONG), "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.")],
    ),
    "no-reasoning-back": (
        [chat(ASKED, said(), ASKED)],
        [(REASONED, "property 'reasoning_content' is unsupported")],
    ),
    "max-tokens": (
        [chat(max_tokens=9), chat()],
        [(chat(max_completion_tokens=9), "body.max_completion_tokens: Extra inputs are not")],
    ),
    "max-completion-tokens": (
        [chat(max_completion_tokens=9), chat()],
        [(chat(max_tokens=9), "Use 'max_completion_tokens' instead.")],
    ),
    "few-fields": (
        [chat(tools=[READ_FILE], tool_choice="auto", max_tokens=9, temperature=0.5)],
        [
            (chat(prompt_cache_key="k"), "body.prompt_cache_key: Extra inputs are not permitted"),
            (chat(reasoning_effort="low"), "body.reasoning_effort: Extra inputs are not"),
        ],
    ),
    "no-stream-options": (
        [chat(stream=True)],
        [(chat(stream=True, stream_options={}), "body.stream_options: Extra inputs are not")],
    ),
    "no-empty": (
        [chat(*CALLED), chat(*CALLED[:2], result("abcdefgh1", ""))],
        [
            (chat(ASKED, said(""), ASKED), "position 1 with role 'assistant' must not be empty"),
            (chat(EMPTY_PART), "text content is empty"),
        ],
    ),
    "no-null": (
        [chat(ASKED, {"role": "assistant", "tool_calls": [call()]}, result())],
        [(chat(*CALLED), "'content' field must be a string or an array of objects")],
    ),
    "no-parts": (
        [chat(*CALLED)],
        [(chat(PART), "'messages[0].content': expected a string, but got an array instead.")],
    ),
    "no-images": (
        [chat(PART)],
        [(chat({"role": "user", "content": [picture()]}), "image input is not supported")],
    ),
    "no-tools": ([chat()], [(chat(tools=[READ_FILE]), "does not support tools")]),
    "whole-window": (
        [chat(max_tokens=900), chat()],
        [(chat(max_tokens=999), "However, you requested 999 output tokens and your prompt")],
    ),
}


@pytest.mark.parametrize("name", CHAT)
def test_a_switch_refuses_what_its_servers_refuse_and_nothing_else(play: Play, name: str) -> None:
    accepted, refused = CHAT[name]
    strict, lenient = play("", strict=frozenset({name}), window=1000), play("")
    for body in accepted:
        answer = post(strict, body)
        assert answer.status == 200, answer.body
    for body, problem in refused:
        answer = post(strict, body)
        assert answer.status == (422 if "Extra inputs" in problem else 400)
        assert problem in answer.body["error"]["message"]
        assert post(lenient, body).status == 200


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        (
            "no-system-later",
            request(user("Hi."), {"role": "system", "content": [text("Mind.")]}),
            "System message must be at the beginning.",
        ),
        ("no-tools", request(tools=[TOOL]), "does not support tools"),
        ("whole-window", request(), "input length and `max_tokens` exceed context limit"),
    ],
)
def test_some_switches_hold_for_the_messages_api_too(
    play: Play, name: str, body: Block, problem: str
) -> None:
    answer = play("", strict=frozenset({name}), window=1000).post(body)
    assert answer.status == 400
    assert problem in answer.error


def test_without_usage_no_reply_has_one(play: Play) -> None:
    running = play("", strict=frozenset({"no-usage"}))
    options = {"stream": True, "stream_options": {"include_usage": True}}
    assert "usage" not in post(running, chat()).body
    assert '"usage"' not in post(running, chat(**options)).body
    assert "usage" not in running.post(request()).body
    assert '"usage"' not in running.post(request(stream=True)).body


def test_short_ids_are_those_of_the_endpoint(play: Play) -> None:
    tool = '[[reply]]\ntool = [{ name = "read_file" }]'
    calls = post(play(tool, strict=frozenset({"short-ids"})), chat()).body["choices"][0]["message"]
    assert re.fullmatch("[a-zA-Z0-9]{9}", calls["tool_calls"][0]["id"])


# Thought signatures

TWO_STEPS = """
[[reply]]
repeat = 3
tool = [{ name = "read_file" }, { name = "list_files" }]
"""


def stepped(running: Endpoint, *messages: Block) -> list[Block]:
    """Return the messages, extended by a reply and the results of its tools."""
    message = post(running, chat(*messages)).body["choices"][0]["message"]
    return [*messages, message, *(result(one["id"]) for one in message["tool_calls"])]


@pytest.fixture
def gemini(play: Play) -> Endpoint:
    """An endpoint that signs tool calls, and plays steps of two calls."""
    return play(TWO_STEPS, strict=frozenset({"thought-signatures"}))


def test_the_first_call_of_each_step_is_signed_and_comes_back_signed(gemini: Endpoint) -> None:
    messages = stepped(gemini, *stepped(gemini, ASKED))
    for message in (messages[1], messages[4]):
        first, second = message["tool_calls"]
        assert first["extra_content"]["google"]["thought_signature"]
        assert "extra_content" not in second
    streamed = chat_calls(post(gemini, chat(*messages, stream=True)))
    assert ["extra_content" in one for one in streamed if "id" in one] == [True, False]


def without_signature(message: Block) -> None:
    """Remove the signature of a message."""
    del message["tool_calls"][0]["extra_content"]


def with_foreign_signature(message: Block) -> None:
    """Replace the signature of a message."""
    message["tool_calls"][0]["extra_content"]["google"]["thought_signature"] = "c2lnbmVk"


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (without_signature, "Function call is missing a thought_signature in functionCall parts."),
        (with_foreign_signature, "Thought signature is not valid."),
    ],
)
def test_a_step_of_this_turn_without_its_signature_is_refused(
    gemini: Endpoint, step: int, change: Any, problem: str
) -> None:
    messages = stepped(gemini, *stepped(gemini, ASKED))
    change(messages[step])
    answer = post(gemini, chat(*messages))
    assert answer.status == 400
    assert problem in answer.body["error"]["message"]
    assert post(gemini, chat(*messages, said(), ASKED)).status == 200


def test_a_call_of_another_model_may_say_that_it_has_no_signature(gemini: Endpoint) -> None:
    skip = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    foreign = said(None, tool_calls=[{**call(), "extra_content": skip}])
    assert post(gemini, chat(ASKED, foreign, result())).status == 200


def test_an_endpoint_without_signatures_knows_none(talker: Endpoint) -> None:
    signed = {**call(), "extra_content": {"google": {"thought_signature": "x"}}}
    answer = post(talker, chat(ASKED, said(None, tool_calls=[signed]), result()))
    message = answer.body["error"]["message"]
    assert message == "Unknown parameter: 'messages[1].tool_calls[0].extra_content'."


# Reasoning that has to come back

THINKS = '[[reply]]\nrepeat = 9\nthinking = "Hm."\ntool = [{ name = "read_file" }]'


@pytest.mark.parametrize(
    ("sent", "status"),
    [({"reasoning_content": "Hm."}, 200), ({}, 400), ({"reasoning_content": ""}, 400)],
)
def test_thinking_has_to_come_back_with_its_tool_calls_in_all_later_requests(
    play: Play, sent: Block, status: int
) -> None:
    running = play(THINKS, strict=frozenset({"reasoning-back"}))
    messages = stepped(running, ASKED)
    assert messages[1].pop("reasoning_content") == "Hm."
    messages[1].update(sent)
    answer = post(running, chat(*messages))
    assert answer.status == status
    later = [*messages, said(reasoning_content="So."), ASKED]
    assert post(running, chat(*later)).status == status
    assert (
        status == 200
        or "Missing `reasoning_content` field in the assistant message at"
        in (answer.body["error"]["message"])
    )


def test_thinking_may_be_empty_where_there_was_none_and_is_not_asked_for_without_tools(
    play: Play,
) -> None:
    running = play(TWO_STEPS, strict=frozenset({"reasoning-back"}))
    messages = stepped(running, ASKED)
    assert post(running, chat(*messages)).status == 400
    messages[1]["reasoning_content"] = ""
    assert post(running, chat(*messages)).status == 200
    assert post(running, chat(ASKED, said(), ASKED)).status == 200


def test_the_page_names_every_switch() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in STRICT if f"| `{name}` |" not in page] == []
