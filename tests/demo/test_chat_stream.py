"""Replies of Chat Completions as the official SDK reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import OpenAI

from efrit_budget.demo.scenario import BUILT_IN, load, steps
from tests.demo.chatting import (
    ASKED,
    READ_FILE,
    chat,
    chat_calls,
    chunks,
    deltas,
    post,
    result,
    said,
)
from tests.demo.conftest import Play
from tests.demo.running import MODEL, Block, Endpoint

INPUT = """{ path = "ä “x” 😀.py", deep = [1, 2.5, true, {}], empty = {} }"""
EVERYTHING = f"""
[[reply]]
thinking = "I should look first."
text = "I will read two files."
tool = [
  {{ name = "read_file", input = {INPUT} }},
  {{ name = "read_file", input_json = '{{"path": "big", "n": 123456789012345678901}}' }},
]
"""


def streamed(running: Endpoint, **others: Any) -> Any:
    """Return the reply that the SDK puts together from a stream."""
    client: OpenAI = running.openai()
    with client.chat.completions.stream(**chat(tools=[READ_FILE], **others)) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def test_the_sdk_puts_text_and_parallel_tool_calls_together_from_the_stream(play: Play) -> None:
    choice = streamed(play(EVERYTHING)).choices[0]
    assert choice.message.content == "I will read two files."
    first, second = choice.message.tool_calls
    assert json.loads(first.function.arguments) == {
        "path": "ä “x” 😀.py",
        "deep": [1, 2.5, True, {}],
        "empty": {},
    }
    assert json.loads(second.function.arguments) == {"path": "big", "n": 123456789012345678901}
    assert first.id != second.id
    assert choice.finish_reason == "tool_calls"


def test_a_reply_without_a_stream_says_the_same(play: Play) -> None:
    reply = play(EVERYTHING).openai().chat.completions.create(**chat(tools=[READ_FILE]))
    message = reply.choices[0].message
    assert message.content == "I will read two files."
    assert message.reasoning_content == "I should look first."
    assert [call.function.name for call in message.tool_calls] == ["read_file", "read_file"]
    assert reply.choices[0].finish_reason == "tool_calls"
    assert reply.usage.prompt_tokens > 0


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thinking_comes_first_in_the_field_that_the_endpoint_was_given(
    play: Play, name: str
) -> None:
    found = deltas(post(play(EVERYTHING, reasoning=name), chat(stream=True)))
    assert found[0] == {"role": "assistant", "content": "", "refusal": None}
    thoughts = [delta[name] for delta in found if name in delta]
    assert "".join(thoughts) == "I should look first."
    assert len(thoughts) == 4
    assert name in found[1]


def test_without_effort_the_model_does_not_think(play: Play) -> None:
    found = deltas(post(play(EVERYTHING), chat(stream=True, reasoning_effort="none")))
    assert not any("reasoning_content" in delta for delta in found)


def test_a_tool_call_begins_with_its_id_and_name_and_its_arguments_follow(play: Play) -> None:
    found = deltas(post(play(EVERYTHING), chat(stream=True)))
    calls = [delta["tool_calls"][0] for delta in found if "tool_calls" in delta]
    begun = [call for call in calls if "id" in call]
    assert [call["index"] for call in begun] == [0, 1]
    assert all(call["type"] == "function" for call in begun)
    assert all(call["function"] == {"name": "read_file", "arguments": ""} for call in begun)
    pieces = [call["function"] for call in calls if "id" not in call]
    assert {tuple(piece) for piece in pieces} == {("arguments",)}
    assert max(len(piece["arguments"]) for piece in pieces) <= 24


def test_a_stream_ends_with_the_finish_reason_and_has_no_usage_unless_asked(play: Play) -> None:
    running = play('[[reply]]\nrepeat = 2\ntext = "Yes."')
    found = chunks(post(running, chat(stream=True)))
    assert [chunk["choices"][0]["finish_reason"] for chunk in found] == [None, None, "stop"]
    assert not any("usage" in chunk for chunk in found)
    assert len({chunk["id"] for chunk in found}) == 1
    assert found[0]["object"] == "chat.completion.chunk"


def test_usage_comes_in_a_last_chunk_without_choices(play: Play) -> None:
    asked = chat(stream=True, stream_options={"include_usage": True})
    *others, last = chunks(post(play(EVERYTHING), asked))
    assert all(chunk["usage"] is None for chunk in others)
    assert last["choices"] == []
    usage = last["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_a_scenario_ends_a_reply_for_any_reason(play: Play, reason: str, finish: str) -> None:
    running = play(f'[[reply]]\ntext = "So far."\nstop_reason = "{reason}"')
    reply = running.openai().chat.completions.create(**chat())
    assert reply.choices[0].finish_reason == finish


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_a_reply_is_no_longer_than_its_limit(play: Play, limit: str) -> None:
    running = play(f'[[reply]]\ntext = "{"many words " * 500}"')
    reply = running.openai().chat.completions.create(**chat(**{limit: 50}))
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 50


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_behind_the_limit_are_left_out(play: Play, *, stream: bool) -> None:
    answer = post(play(EVERYTHING), chat(max_tokens=60, stream=stream, reasoning_effort="none"))
    calls = chat_calls(answer) if stream else answer.body["choices"][0]["message"]["tool_calls"]
    assert len([call for call in calls if "id" in call]) == 1


def test_what_was_sent_before_is_read_from_the_cache_without_marks(play: Play) -> None:
    client = play("").openai()
    long = {"role": "user", "content": "word " * 4000}
    first = client.chat.completions.create(**chat(long)).usage
    again = client.chat.completions.create(**chat(long, said(), ASKED)).usage
    assert first.prompt_tokens_details.cached_tokens == 0
    cached = again.prompt_tokens_details.cached_tokens
    assert cached % 128 == 0
    assert first.prompt_tokens - 128 < cached <= first.prompt_tokens


def test_a_short_prompt_is_not_read_from_the_cache(play: Play) -> None:
    client = play("").openai()
    for _ in range(2):
        usage = client.chat.completions.create(**chat()).usage
        assert usage.prompt_tokens_details.cached_tokens == 0


def test_every_reply_is_valid_for_the_sdks_own_types(play: Play) -> None:
    client = play(EVERYTHING).openai(_strict_response_validation=True)
    reply = client.chat.completions.create(**chat(tools=[READ_FILE]))
    assert reply.id.startswith("chatcmpl-")
    assert reply.model == MODEL


def going_on(running: Endpoint, messages: list[Block], **others: Any) -> list[Block]:
    """Return the messages, extended by a reply and the results of its tools."""
    reply = running.openai().chat.completions.create(**chat(*messages, **others))
    message = reply.choices[0].message.to_dict()
    results = [result(one["id"], "ok") for one in message.get("tool_calls") or []]
    return [*messages, message, *(results or [ASKED])]


@pytest.mark.parametrize("name", ["tour", "long", "greenhouse"])
def test_a_scenario_that_comes_with_the_package_is_played_to_its_end(play: Play, name: str) -> None:
    running = play((BUILT_IN / f"{name}.toml").read_text(encoding="utf-8"))
    messages = [{"role": "system", "content": "You work."}, ASKED]
    for _ in steps(load(name)):
        messages = going_on(running, messages)
    assert running.lines()[-1]["stop_reason"] == "end_turn"
    assert {line["status"] for line in running.lines()} == {200}


def test_a_user_tells_conversations_apart_that_begin_alike(play: Play) -> None:
    client = play('[[reply]]\nrepeat = 50\ntext = "{n}"').openai()
    heard = [
        client.chat.completions.create(**chat(user=name)).choices[0].message.content
        for name in ("a", "b", "a")
    ]
    assert heard == ["1", "1", "2"]


def test_both_apis_count_about_the_same_for_the_same_words(play: Play) -> None:
    running = play("")
    long = "word " * 4000
    chatting = running.openai().chat.completions.create(**chat({"role": "user", "content": long}))
    messages = [{"role": "user", "content": long}]
    other = running.client().messages.create(model=MODEL, max_tokens=9, messages=messages)
    assert chatting.usage.prompt_tokens == other.usage.input_tokens


def test_results_fill_the_placeholders_of_the_next_reply(play: Play) -> None:
    call = '{ name = "read_file", input = { handle = "{handle}" } }'
    running = play(f"[[reply]]\nrepeat = 2\ntool = [{call}]")
    messages = going_on(running, [ASKED])
    messages[-1]["content"] = [{"type": "text", "text": "Stored as r12."}]
    reply = running.openai().chat.completions.create(**chat(*messages))
    assert reply.choices[0].message.tool_calls[0].function.arguments == '{"handle": "r12"}'
