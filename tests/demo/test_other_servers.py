"""Replies and errors as other servers of the two APIs send them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from tests.demo.chatting import READ_FILE, chat, chat_calls, chunks, post
from tests.demo.conftest import Play
from tests.demo.running import TOOL, Answer, Endpoint, request

TWO_CALLS = """
[[reply]]
text = "I look at both of them."
tool = [
  { name = "read_file", input = { path = "a rather long path to a file" } },
  { name = "read_file", input = { path = "another rather long path to a file" } },
]
"""
AND_THEN = '\n[[reply]]\ntext = "Here you are."\n'
Ask = Callable[..., Answer]


def ask_messages(running: Endpoint, **others: Any) -> Answer:
    """Send a request by the Messages API."""
    return running.post(request(tools=[TOOL], **others))


def ask_chat(running: Endpoint, **others: Any) -> Answer:
    """Send a request by Chat Completions."""
    return post(running, chat(tools=[READ_FILE], **others))


BOTH = pytest.mark.parametrize("ask", [ask_messages, ask_chat])


def events(answer: Answer) -> list[Any]:
    """Return the data of the events of a stream, parsed where it is JSON."""
    lines = [line[6:] for line in answer.body.splitlines() if line.startswith("data: ")]
    return [json.loads(line) if line.endswith("}") else line for line in lines]


def said(answer: Answer) -> str:
    """Return the text of a reply that is not streamed."""
    if "choices" in answer.body:
        return str(answer.body["choices"][0]["message"]["content"])
    return "".join(block["text"] for block in answer.body["content"] if "text" in block)


# Faults


@BOTH
@pytest.mark.parametrize("status", [429, 529, 500])
def test_an_error_comes_in_the_form_of_the_api_and_then_the_next_reply(
    play: Play, ask: Ask, status: int
) -> None:
    fault = f"[[reply]]\nstatus = {status}\nmessage = 'Not now.'\nretry_after = 3"
    running = play(fault + AND_THEN)
    answer = ask(running)
    assert (answer.status, answer.headers["retry-after"]) == (status, "3")
    assert answer.body["error"]["message"] == "Not now."
    assert said(ask(running)) == "Here you are."


@BOTH
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"error": "model is loading"}', "application/json"),
        ('{"detail": "no memory"}', "application/json"),
        ('[{"error": {"code": 400, "message": "no"}}]', "application/json"),
        ("<html><body>Bad gateway</body></html>", "text/html"),
        ("upstream connect error", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_an_error_body_is_sent_as_it_is_written(play: Play, ask: Ask, body: str, kind: str) -> None:
    entry = f"[[reply]]\nstatus = 502\ncontent_type = '{kind}'\nerror_body = '{body}'"
    running = play(entry + AND_THEN)
    answer = ask(running, stream=True)
    sent = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    assert (answer.status, sent, answer.headers["content-type"]) == (502, body, kind)
    assert said(ask(running)) == "Here you are."


@BOTH
def test_an_error_can_come_with_status_200(play: Play, ask: Ask) -> None:
    error = {"error": {"message": "quota", "code": 429}}
    running = play(f"[[reply]]\nstatus = 200\nerror_body = '{json.dumps(error)}'" + AND_THEN)
    answer = ask(running, stream=True)
    assert (answer.status, answer.body) == (200, error)
    assert said(ask(running)) == "Here you are."


@BOTH
@pytest.mark.parametrize("said_first", ["", 'text = "one two three"\n', 'thinking = "Hm."\n'])
def test_an_error_event_ends_the_stream_also_without_text(
    play: Play, ask: Ask, said_first: str
) -> None:
    fault = f"[[reply]]\n{said_first}error_event = 'overloaded_error'\nmessage = 'Too many.'"
    running = play(fault + AND_THEN)
    *_, last = events(ask(running, stream=True))
    assert last["error"]["message"] == "Too many."
    assert said(ask(running)) == "Here you are."


@BOTH
def test_an_error_event_can_have_any_data(play: Play, ask: Ask) -> None:
    fault = "[[reply]]\nerror_event = 'api_error'\nerror_body = '{\"error\": \"no memory\"}'"
    *_, last = events(ask(play(fault), stream=True))
    assert last == {"error": "no memory"}


@BOTH
def test_an_event_is_malformed_and_the_others_are_whole(play: Play, ask: Ask) -> None:
    found = events(ask(play('[[reply]]\ntext = "one two"\nmalformed = true'), stream=True))
    assert len([one for one in found if isinstance(one, str) and one != "[DONE]"]) == 1
    assert "two" in json.dumps(found)


@BOTH
@pytest.mark.parametrize("cut", ["text", "tool_input"])
def test_a_stream_is_cut(play: Play, ask: Ask, cut: str) -> None:
    running = play(f'{TWO_CALLS}cut = "{cut}"' + AND_THEN)
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(running, stream=True)
    assert b"[DONE]" not in caught.value.partial
    assert b"I " in caught.value.partial
    assert b"another" not in caught.value.partial
    assert said(ask(running)) == "Here you are."


@BOTH
def test_without_a_stream_its_faults_are_errors(play: Play, ask: Ask) -> None:
    entries = ['cut = "text"', "malformed = true", 'error_event = "overloaded_error"']
    running = play("\n".join(f'[[reply]]\ntext = "words"\n{entry}' for entry in entries))
    assert [ask(running).status for _ in entries] == [500, 500, 529]


@BOTH
def test_a_redirect_names_another_host(play: Play, ask: Ask) -> None:
    running = play('[[reply]]\nredirect = "http://localhost:9/v1/messages"' + AND_THEN)
    answer = ask(running)
    assert (answer.status, answer.headers["location"]) == (307, "http://localhost:9/v1/messages")
    assert said(ask(running)) == "Here you are."


# Forms of a stream


@pytest.mark.parametrize(
    ("member", "messages", "chatting"),
    [("", False, True), ("done = true", True, True), ("done = false", False, False)],
)
def test_a_stream_ends_with_done_or_without(
    play: Play, member: str, messages: bool, chatting: bool
) -> None:
    running = play(f'[[reply]]\nrepeat = 2\ntext = "Yes."\n{member}')
    assert (events(ask_messages(running, stream=True))[-1] == "[DONE]") == messages
    assert (events(ask_chat(running, stream=True))[-1] == "[DONE]") == chatting


def test_blocks_are_interleaved_and_the_sdk_tells_them_apart(play: Play) -> None:
    running = play(TWO_CALLS + "interleaved = true")
    with running.client().messages.stream(**request(tools=[TOOL])) as stream:
        found = [event.index for event in stream if event.type == "content_block_delta"]
        message = stream.get_final_message()
    assert found[:8] == [1, 2, 0, 1, 2, 0, 1, 2]
    assert [block.input["path"][:7] for block in message.content[1:]] == ["a rathe", "another"]


def test_tool_calls_are_interleaved_and_the_sdk_tells_them_apart(play: Play) -> None:
    running = play(TWO_CALLS + "repeat = 2\ninterleaved = true")
    indices = [call["index"] for call in chat_calls(ask_chat(running, stream=True))]
    assert indices[:6] == [0, 1, 0, 1, 0, 1]
    with running.openai().chat.completions.stream(**chat(tools=[READ_FILE])) as stream:
        calls = stream.until_done().get_final_completion().choices[0].message.tool_calls
    paths = [json.loads(call.function.arguments)["path"] for call in calls]
    assert [path[:7] for path in paths] == ["a rathe", "another"]


def test_an_input_can_be_complete_at_its_beginning(play: Play) -> None:
    running = play(TWO_CALLS + "repeat = 2\ncomplete_input = true")
    found = [event for event in events(ask_messages(running, stream=True)) if "type" in event]
    begun = [event["content_block"] for event in found if event["type"] == "content_block_start"]
    assert begun[1]["input"] == {"path": "a rather long path to a file"}
    assert "input_json_delta" not in json.dumps(found)
    calls = chat_calls(ask_chat(running, stream=True))
    assert len(calls) == 2
    assert json.loads(calls[0]["function"]["arguments"]) == begun[1]["input"]


@pytest.mark.parametrize(("member", "expected"), [("none", [None, None]), ("zero", [0, 0])])
def test_tool_calls_can_lack_their_index(
    play: Play, member: str, expected: list[int | None]
) -> None:
    running = play(f'{TWO_CALLS}complete_input = true\nindex = "{member}"')
    calls = chat_calls(ask_chat(running, stream=True))
    assert [call.get("index") for call in calls] == expected


def test_comments_stand_between_the_events(play: Play) -> None:
    running = play('[[reply]]\nrepeat = 2\ntext = "one two"\ncomments = true')
    assert ask_chat(running, stream=True).body.count("\n: processing\n") == 4
    with running.client().messages.stream(**request()) as stream:
        assert stream.get_final_text() == "one two"


@BOTH
def test_a_big_event_has_the_text_many_times_and_counts_it_once(play: Play, ask: Ask) -> None:
    running = play('[[reply]]\nrepeat = 2\ntext = "big "\nbig_event = 100000\nusage = "finish"')
    lines = ask(running, stream=True).body.splitlines()
    assert 100_000 < max(map(len, lines)) < 101_000
    assert len([line for line in lines if "big big" in line]) == 1
    assert len(said(ask(running))) == 100_000
    recorded = [line["usage"] for line in running.lines()]
    assert all(usage.get("output_tokens", usage.get("completion_tokens")) < 9 for usage in recorded)


# Usage


@BOTH
@pytest.mark.parametrize(("member", "shown"), [("none", False), ("zero", True)])
def test_usage_is_missing_or_zero_and_recorded_as_it_is(
    play: Play, ask: Ask, member: str, shown: bool
) -> None:
    running = play(f'[[reply]]\nrepeat = 2\ntext = "Yes."\nusage = "{member}"')
    options = {"stream_options": {"include_usage": True}} if ask is ask_chat else {}
    streamed = ask(running, stream=True, **options).body
    whole = ask(running).body
    assert ("usage" in whole) == shown
    assert ("_tokens" in streamed) == shown
    assert not shown or set(whole["usage"].values()) == {0}
    assert all(any(line["usage"].values()) for line in running.lines())


def test_usage_can_come_with_the_finish_reason_unasked(play: Play) -> None:
    last = chunks(ask_chat(play('[[reply]]\ntext = "Yes."\nusage = "finish"'), stream=True))[-1]
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["total_tokens"] > 0


# Empty replies and ids


@BOTH
def test_a_reply_can_be_empty(play: Play, ask: Ask) -> None:
    running = play("[[reply]]\nrepeat = 2\nempty = true" + AND_THEN)
    body = ask(running).body
    message = body["choices"][0]["message"] if "choices" in body else body
    assert not message["content"]
    assert "delta" in ask(running, stream=True).body
    assert running.lines()[0]["stop_reason"] == "end_turn"


def test_ids_are_those_of_the_scenario_in_every_reply(play: Play) -> None:
    running = play(TWO_CALLS + 'repeat = 4\nids = ["call_0"]')
    for _ in range(2):
        blocks = ask_messages(running).body["content"]
        assert [block["id"] for block in blocks if "id" in block] == ["call_0", "call_0"]
        calls = ask_chat(running).body["choices"][0]["message"]["tool_calls"]
        assert [call["id"] for call in calls] == ["call_0", "call_0"]


@pytest.mark.parametrize(("member", "ids"), [("no_ids = true", []), ('ids = [""]', ["", ""])])
def test_ids_are_missing_or_empty(play: Play, member: str, ids: list[str]) -> None:
    running = play(f"{TWO_CALLS}repeat = 3\n{member}")
    blocks = ask_messages(running).body["content"]
    assert [block["id"] for block in blocks if "id" in block] == ids
    calls = chat_calls(ask_chat(running, stream=True))
    assert [call["id"] for call in calls if "id" in call] == ids


# The SDKs as clients of all this


def test_openais_sdk_knows_the_errors(play: Play) -> None:
    client = play("\n".join(f"[[reply]]\nstatus = {status}" for status in (429, 503))).openai()
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(**chat())
    assert caught.value.request_id
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**chat())


def test_openais_sdk_retries_as_retry_after_says(play: Play) -> None:
    overloaded = "[[reply]]\nstatus = 503\nretry_after = 0.01\nrepeat = 3\n"
    client = play(overloaded + AND_THEN).openai(max_retries=3)
    reply = client.chat.completions.create(**chat())
    assert reply.choices[0].message.content == "Here you are."


def test_both_sdks_raise_an_error_that_comes_within_the_stream(play: Play) -> None:
    running = play("[[reply]]\nrepeat = 2\nerror_event = 'overloaded_error'")
    with pytest.raises(openai.APIError):
        list(running.openai().chat.completions.create(stream=True, **chat()))
    with (
        pytest.raises(anthropic.APIStatusError),
        running.client().messages.stream(**request()) as stream,
    ):
        list(stream)
