"""Replies as the official SDK reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.demo.conftest import Play
from tests.demo.running import TOOL, Endpoint, request, result, user

INPUT = """{ path = "ä “x” 😀.py", deep = [1, 2.5, true, {}], empty = {} }"""
EVERYTHING = f"""
[[reply]]
thinking = "I should look first."
text = "I will read two files."
tool = [
  {{ name = "read_file", input = {INPUT} }},
  {{ name = "read_file", input_json = '{{"path": "big", "n": 123456789012345678901, "x": null}}' }},
]
"""
SUMMARIZED = {"type": "adaptive", "display": "summarized"}


def streamed(running: Endpoint, **others: Any) -> tuple[list[Any], Any]:
    """Return the raw events and the final message of a streamed request."""
    body = request(**others)
    with running.client().messages.stream(**body) as stream:
        events = [event for event in stream if event.type in RAW]
        return events, stream.get_final_message()


RAW = {
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
}


def test_the_sdk_puts_thinking_text_and_tool_uses_together_from_the_stream(play: Play) -> None:
    _, message = streamed(play(EVERYTHING), tools=[TOOL], thinking=SUMMARIZED)
    thinking, said, first, second = message.content
    assert thinking.thinking == "I should look first."
    assert thinking.signature
    assert said.text == "I will read two files."
    assert first.input == {"path": "ä “x” 😀.py", "deep": [1, 2.5, True, {}], "empty": {}}
    assert second.input == {"path": "big", "n": 123456789012345678901, "x": None}
    assert message.stop_reason == "tool_use"


def test_events_come_in_the_apis_order_with_a_ping_after_the_first_block(play: Play) -> None:
    answer = play(EVERYTHING).post(request(stream=True, tools=[TOOL], thinking=SUMMARIZED))
    names = [line[7:] for line in answer.body.splitlines() if line.startswith("event: ")]
    data = [json.loads(line[6:]) for line in answer.body.splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in data] == names
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]
    deltas = [event["delta"]["type"] for event in data if event["type"] == "content_block_delta"]
    kinds = list(dict.fromkeys(deltas))
    assert kinds == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta"]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["request-id"].startswith("req_")


def test_text_comes_word_by_word(play: Play) -> None:
    events, _ = streamed(play('[[reply]]\ntext = "one two\\n three"'))
    words = [event.delta.text for event in events if event.type == "content_block_delta"]
    assert words == ["one ", "two\n ", "three"]


def test_without_a_display_thinking_is_signed_and_not_shown(play: Play) -> None:
    _, message = streamed(play(EVERYTHING), tools=[TOOL])
    assert message.content[0].thinking == ""
    assert message.content[0].signature
    assert message.usage.output_tokens_details.thinking_tokens > 0


def test_a_reply_without_a_stream_says_the_same(play: Play) -> None:
    message = (
        play(EVERYTHING).client().messages.create(**request(tools=[TOOL], thinking=SUMMARIZED))
    )
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > 0


@pytest.mark.parametrize(
    "reason", ["pause_turn", "refusal", "max_tokens", "model_context_window_exceeded"]
)
def test_a_scenario_ends_a_reply_for_any_reason(play: Play, reason: str) -> None:
    running = play(f'[[reply]]\ntext = "So far."\nstop_reason = "{reason}"')
    _, message = streamed(running)
    assert message.stop_reason == reason
    assert (message.stop_details is not None) == (reason == "refusal")


def test_a_paused_reply_can_be_sent_back_to_go_on(play: Play) -> None:
    running = play(
        '[[reply]]\ntext = "So far"\nstop_reason = "pause_turn"\n[[reply]]\ntext = "and on."'
    )
    client, asked = running.client(), user("Begin.")
    paused = client.messages.create(**request(asked))
    going_on = request(asked, {"role": "assistant", "content": paused.to_dict()["content"]})
    assert client.messages.create(**going_on).content[0].to_dict()["text"] == "and on."


def test_a_reply_is_no_longer_than_max_tokens(play: Play) -> None:
    running = play(f'[[reply]]\ntext = "{"many words " * 500}"')
    _, message = streamed(running, max_tokens=50)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 50
    assert 0 < len(message.content[0].text) < 1000


def test_a_tool_use_that_is_longer_than_max_tokens_ends_within_its_input(play: Play) -> None:
    given = "many words " * 500
    use = f'{{ name = "read_file", input = {{ path = "{given}" }} }}'
    answer = play(f'[[reply]]\ntext = "So."\ntool = [{use}]').post(
        request(stream=True, max_tokens=60, tools=[TOOL])
    )
    events = [json.loads(line[6:]) for line in answer.body.splitlines() if line[:5] == "data:"]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    text = "".join(delta.get("partial_json", "") for delta in deltas)
    assert text.startswith('{"path": "many words')
    assert not text.endswith("}")
    assert [event["type"] for event in events[-3:]] == [
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"
    assert events[-2]["usage"]["output_tokens"] == 60


@pytest.mark.parametrize("written", ['{"path": "a.t', '["a"]', "nonsense", '"text"', "null"])
def test_a_tools_input_goes_out_as_it_is_written_be_it_what_it_may(
    play: Play, written: str
) -> None:
    entry = f"[[reply]]\ntool = [{{ name = \"read_file\", input_json = '{written}' }}]"
    answer = play(entry).post(request(stream=True, tools=[TOOL]))
    assert json.dumps(written)[1:-1] in answer.body
    assert '"message_stop"' in answer.body


def test_at_its_lowest_the_model_thinks_behind_tool_results_alone(play: Play) -> None:
    twice = EVERYTHING + EVERYTHING
    running, lowest = play(twice), {"thinking": {"type": "between_tools"}, "tools": [TOOL]}
    first = running.post(request(**lowest)).body
    assert [block["type"] for block in first["content"]] == ["text", "tool_use", "tool_use"]
    results = [result(block["id"]) for block in first["content"][1:]]
    said = {"role": "assistant", "content": first["content"]}
    second = running.post(request(user("Hello."), said, user(*results), **lowest)).body
    assert second["content"][0]["type"] == "thinking"


def test_every_message_is_valid_for_the_sdks_own_types(play: Play) -> None:
    running = play(EVERYTHING)
    client = running.client(_strict_response_validation=True)
    message = client.messages.create(**request(tools=[TOOL], diagnostics={}))
    assert message.id.startswith("msg_")
    assert message.model == request()["model"]
