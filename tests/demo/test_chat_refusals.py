"""The requests that Chat Completions refuses; the SDK's own types agree on their shape."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from efrit_budget.demo.chat.complaints import check_shape
from efrit_budget.demo.refusals import ApiError
from tests.demo.changes import WRONG, Place, changed, fields, places
from tests.demo.chatting import ASKED, READ_FILE, call, chat, post, result, said
from tests.demo.conftest import Play
from tests.demo.running import Block, Endpoint
from tests.demo.sdk_types import openai_takes
from tests.demo.test_refusals import picture as small_picture

SYSTEM: Block = {"role": "system", "content": "You work."}
DEVELOPER: Block = {"role": "developer", "content": "You work."}
CALLED = (ASKED, said(None, tool_calls=[call()]))
TWICE = (ASKED, said(None, tool_calls=[call(), call("call_2")]))


def named(name: str, **others: Any) -> Block:
    """Return a tool of this name."""
    return {"type": "function", "function": {"name": name, **others}}


def picture(url: str | None = None) -> Block:
    """Return a part that is an image: a small one, unless there is a URL."""
    source = small_picture()["source"]
    small = f"data:{source['media_type']};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url or small}}


ACCEPTED: dict[str, Block] = {
    "a system message": chat(SYSTEM, ASKED),
    "a developer message": chat(DEVELOPER, ASKED),
    "a system message in the middle": chat(ASKED, said(), SYSTEM, ASKED),
    "two users in a row": chat(ASKED, ASKED),
    "parts of a content": chat({"role": "user", "content": [{"type": "text", "text": "Hi."}]}),
    "an empty text": chat({"role": "user", "content": ""}),
    "an image": chat({"role": "user", "content": [picture(), picture("https://x/y.png")]}),
    "a call and its result": chat(*CALLED, result()),
    "a call whose message has no content": chat(
        ASKED, {"role": "assistant", "tool_calls": [call()]}, result()
    ),
    "a user behind a result": chat(*CALLED, result(), ASKED),
    "two calls, answered in another order": chat(*TWICE, result("call_2"), result()),
    "an id that was used before": chat(*CALLED, result(), *CALLED, result()),
    "arguments that are no JSON": chat(
        ASKED, said(None, tool_calls=[call(arguments='{"pa')]), result()
    ),
    "a refusal": chat(ASKED, {"role": "assistant", "refusal": "No."}, ASKED),
    "a reply at the end": chat(ASKED, said("So far")),
    "nothing but a system message": chat(SYSTEM),
    "a tool without arguments": chat(tools=[named("look")]),
    "everything optional": chat(
        tools=[READ_FILE],
        tool_choice={"type": "function", "function": {"name": "read_file"}},
        parallel_tool_calls=False,
        reasoning_effort="low",
        verbosity="low",
        response_format={"type": "json_object"},
        temperature=0.5,
        top_p=0.5,
        frequency_penalty=1.5,
        presence_penalty=-1.5,
        stop=["x"],
        seed=7,
        n=1,
        user="someone",
        safety_identifier="s",
        prompt_cache_key="k",
        store=False,
        service_tier="auto",
        max_completion_tokens=500,
    ),
    "a schema for the reply": chat(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "object"}},
        }
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted_is_valid_for_the_sdk(talker: Endpoint, name: str) -> None:
    answer = post(talker, ACCEPTED[name])
    assert answer.status == 200, answer.body
    assert openai_takes(ACCEPTED[name])


def test_reasoning_may_come_back_in_the_field_in_which_it_was_sent(talker: Endpoint) -> None:
    back = chat(ASKED, said(reasoning_content="Hm."), ASKED)
    assert post(talker, back).status == 200
    other = chat(ASKED, said(reasoning="Hm."), ASKED)
    assert "Unknown parameter: 'messages[1].reasoning'" in message(post(talker, other))


def message(answer: Any) -> str:
    """Return an error's message, in the API's form."""
    assert answer.headers["x-request-id"]
    assert set(answer.body["error"]) == {"message", "type", "param", "code"}
    return str(answer.body["error"]["message"])


REFUSED: list[tuple[Block, str]] = [
    # Shapes
    ({"model": "claude-sonnet-5-5"}, "Missing required parameter: 'messages'."),
    ({**chat(), "messages": []}, "Invalid 'messages': empty array."),
    (chat(top_k=5), "Unknown parameter: 'top_k'."),
    (chat({**ASKED, "at": 1}), "Unknown parameter: 'messages[0].at'."),
    (chat({"role": "robot", "content": "x"}), "Invalid value: 'robot'. Supported are: 'system'"),
    (chat({"content": "x"}), "Missing required parameter: 'messages[0].role'."),
    (chat({"role": "user", "content": None}), "Invalid type for 'messages[0].content'"),
    (chat({"role": "user", "content": []}), "Invalid 'messages[0].content': empty array."),
    (chat({"role": "user", "content": [{"text": "x"}]}), "'messages[0].content[0].type'"),
    (chat(stream="yes"), "Invalid type for 'stream'"),
    (chat(temperature=3.0), "Invalid value for 'temperature'"),
    (chat(tool_choice="perhaps", tools=[READ_FILE]), "Invalid value: 'perhaps'. Expected 'none'"),
    (chat(tools=[]), "Invalid 'tools': empty array."),
    (chat(tools=[named(f"t{number}") for number in range(129)]), "Expected at most 128, but got"),
    (
        chat({"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}),
        "Invalid value: 'file'. Supported are: 'text', 'image_url'.",
    ),
    (
        chat(ASKED, said(None, tool_calls=[]), ASKED),
        "Invalid 'messages[1].tool_calls': empty array.",
    ),
    # Tool calls and results
    (chat(ASKED, result()), "messages with role 'tool' must be a response to a preceeding message"),
    (chat(*CALLED, result(), ASKED, result()), "must be a response to a preceeding message"),
    (chat(*CALLED, result(), result("call_2")), "'tool_call_id' of 'call_2' not found"),
    (chat(*CALLED, result(), result()), "Duplicate value for 'tool_call_id' of 'call_1', in"),
    (chat(*CALLED, ASKED), "did not have response messages: call_1"),
    (chat(*CALLED), "did not have response messages: call_1"),
    (chat(*TWICE, result(), ASKED), "did not have response messages: call_2"),
    (
        chat(ASKED, said(None, tool_calls=[call(arguments={"path": "a"})]), result()),
        "Invalid type for 'messages[1].tool_calls[0].function.arguments'",
    ),
    (
        chat(ASKED, said(None, tool_calls=[call(name="read file")]), result()),
        "'messages[1].tool_calls[0].function.name': string does not match pattern.",
    ),
    (chat(ASKED, said(None, tool_calls=[call("")]), result("")), "tool_calls[0].id': empty string"),
    (
        chat(ASKED, said(None, tool_calls=[call("c" * 41)]), result("c" * 41)),
        "string too long. Expected at most 40, but got 41.",
    ),
    (chat(*CALLED, result(content=[picture()])), "Invalid value: 'image_url'. Expected 'text'."),
    (chat(ASKED, said(None), ASKED), "Invalid value for 'content': expected a string, got null."),
    # Tools
    (chat(tools=[READ_FILE, READ_FILE]), "Tool names must be unique."),
    (chat(tools=[named("read file")]), "'tools[0].function.name': string does not match pattern."),
    (chat(tools=[named("a" * 65)]), "'tools[0].function.name': string does not match pattern."),
    (chat(tools=[named("a", parameters={})]), "Invalid schema for function 'a'"),
    (
        chat(tools=[named("a", parameters={"type": "object", "anyOf": []})]),
        "must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level",
    ),
    # Parameters
    (chat(max_tokens=5, max_completion_tokens=5), "at the same time is not supported"),
    (chat(max_tokens=128_001), "max_tokens is too large: 128001."),
    (chat(tool_choice="auto"), "'tool_choice' is only allowed when 'tools' are specified."),
    (chat(parallel_tool_calls=True), "'parallel_tool_calls' is only allowed when 'tools' are"),
    (chat(stream_options={"include_usage": True}), "only allowed when 'stream' is enabled."),
    (chat({"role": "user", "content": [picture("data:image/png;base64,!")]}), "process image"),
]


@pytest.mark.parametrize(("body", "problem"), REFUSED)
def test_what_the_api_refuses_is_refused_in_its_words(
    talker: Endpoint, body: Block, problem: str
) -> None:
    answer = post(talker, body)
    assert answer.status == 400
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert problem in message(answer)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"authorization": None}, 401, "invalid_api_key"),
        ({"authorization": None, "x_api_key": "sk-test"}, 401, "invalid_api_key"),
        ({"authorization": "Bearer bad"}, 401, "invalid_api_key"),
        ({"authorization": "Bearer nocredit"}, 429, "insufficient_quota"),
        ({"authorization": "Bearer forbidden"}, 403, "permission_denied"),
    ],
)
def test_a_key_is_needed(
    talker: Endpoint, headers: dict[str, str | None], status: int, code: str
) -> None:
    answer = post(talker, chat(), **headers)
    assert (answer.status, answer.body["error"]["code"]) == (status, code)


def test_an_unknown_model_is_not_found(talker: Endpoint) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        talker.openai().chat.completions.create(**chat(model="gpt-9"))
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"


def test_a_prompt_above_the_window_is_too_long(talker: Endpoint) -> None:
    long = {"role": "user", "content": "word " * 300_000}
    with pytest.raises(openai.BadRequestError) as caught:
        talker.openai().chat.completions.create(**chat(long, model="claude-haiku-4-5"))
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 200000 tokens" in str(caught.value)


def test_what_is_no_json_is_refused(talker: Endpoint) -> None:
    answer = post(talker, b"{")
    assert answer.status == 400
    assert "not valid JSON" in message(answer)


def test_a_refused_request_does_not_move_the_scenario_on(play: Play) -> None:
    running = play('[[reply]]\ntext = "First."')
    assert post(running, chat(top_k=1)).status == 400
    assert post(running, chat()).body["choices"][0]["message"]["content"] == "First."


# Shapes: every place of a rich request, changed in every way

RICH = chat(
    SYSTEM,
    {"role": "user", "content": [{"type": "text", "text": "Look."}, picture()], "name": "me"},
    said("I do.", tool_calls=[call(arguments='{"path": "a"}')]),
    result(content=[{"type": "text", "text": "found"}]),
    ASKED,
    tools=[READ_FILE],
    tool_choice="auto",
    max_tokens=500,
    stream=True,
    stream_options={"include_usage": True},
    reasoning_effort="low",
    temperature=0.5,
    stop=["x"],
    user="u",
)
FREE = (("tools", 0, "function", "parameters"),)
"""The places below which any value is allowed."""


def we_take(body: Block) -> bool:
    """Return whether our own check accepts the shape of a request."""
    try:
        check_shape(body)
    except ApiError:
        return False
    return True


def test_the_rich_request_is_right_for_both() -> None:
    assert we_take(RICH)
    assert openai_takes(RICH)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(places(RICH)),
    value=st.sampled_from(WRONG),
    removes=st.booleans(),
)
def test_what_the_sdks_types_refuse_is_refused_by_ours(
    path: Place, value: Any, *, removes: bool
) -> None:
    body = changed(RICH, path, value, removes=removes)
    if we_take(body):
        assert openai_takes(body), path


@pytest.mark.parametrize("path", fields(RICH, FREE))
def test_a_field_that_nobody_knows_is_refused_beside_every_other(path: Place) -> None:
    assert not we_take(changed(RICH, (*path[:-1], "unheard_of"), 1))
