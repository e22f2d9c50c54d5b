"""Message threads, and the tool runners that use them."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic import beta_tool

from efrit_budget.demo.messages.shapes import BETAS
from tests.demo.conftest import Play
from tests.demo.running import TOOL, Answer, Block, Endpoint, request, result, user
from tests.demo.sdk_types import sdk_takes

STEPS = """
[[reply]]
repeat = 2
thinking = "Step {n}."
text = "I read {n}."
tool = [{ name = "read_file", input = { path = "{n}.txt" } }]

[[reply]]
text = "Both are read."
"""
CREATE = {"type": "create"}


def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: the file
    """
    return f"content of {path}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("thread", [{}, {"thread": False}])
def test_the_sdks_tool_runner_runs_to_its_end(
    play: Play, thread: dict[str, Any], *, stream: bool
) -> None:
    running = play(STEPS)
    given = request(user("Read both."), tools=[beta_tool(read_file)], stream=stream, **thread)
    runner = running.client().beta.messages.tool_runner(**given)
    assert runner.until_done().content[0].text == "Both are read."
    lines = running.lines()
    assert [line["status"] for line in lines] == [200, 200, 200]
    sent = [len(line["body"]["messages"]) for line in lines]
    assert sent == ([1, 3, 5] if thread else [1, 1, 1])


def post(running: Endpoint, body: Block) -> Answer:
    """Post a request with the beta header of threads."""
    assert sdk_takes(body, is_beta=True)
    return running.post(body, beta=BETAS["thread"])


def going_on(answer: Answer, **others: Any) -> Block:
    """Return a request that continues the thread of a reply with the results of its tools."""
    reply = answer.body
    results = [result(one["id"]) for one in reply["content"] if one["type"] == "tool_use"]
    thread = {"type": "continue", "previous_message_id": reply["id"]}
    return request(user(*results), thread=thread, **others)


def test_a_thread_keeps_the_prompt_with_its_system_text_and_tools(play: Play) -> None:
    running = play(STEPS)
    first = post(running, request(system="You work.", tools=[TOOL], thread=CREATE))
    second = post(running, going_on(first))
    third = post(running, going_on(second))
    assert third.body["content"][0]["text"] == "Both are read."
    prompts = [answer.body["usage"]["input_tokens"] for answer in (first, second, third)]
    assert prompts == sorted(prompts)
    again = post(running, going_on(second))
    assert again.body["usage"]["input_tokens"] == prompts[2]


def test_a_thread_that_is_not_held_is_not_found_and_says_so_to_programs(play: Play) -> None:
    thread = {"type": "continue", "previous_message_id": "msg_unheard"}
    answer = post(play(STEPS), request(thread=thread))
    assert answer.status == 404
    assert answer.body["error"]["details"] == {"error_code": "thread_not_found"}


@pytest.mark.parametrize("repeated", [{"tools": [TOOL]}, {"system": "You work."}])
def test_what_a_thread_keeps_must_not_be_sent_again(play: Play, repeated: Block) -> None:
    running = play(STEPS)
    first = post(running, request(tools=[TOOL], thread=CREATE))
    answer = post(running, going_on(first, **repeated))
    assert answer.status == 400
    assert "cannot be set on a request that continues a thread" in answer.error


def test_without_its_beta_header_a_thread_is_unknown(talker: Endpoint) -> None:
    answer = talker.post(request(thread=CREATE))
    assert "thread: Extra inputs are not permitted" in answer.error
