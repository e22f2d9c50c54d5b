"""Scenario files: the replies, their order, and the clients that get them."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from efrit_budget.demo.scenario import BUILT_IN, ScenarioError, built_in, load, parse, steps
from tests.demo.conftest import Play
from tests.demo.running import TOOL, Block, Endpoint, request, result, user

COUNTING = '[[reply]]\nrepeat = 50\ntext = "{n}"'


def said(running: Endpoint, body: Block) -> str:
    """Return the first text of the reply to a request."""
    answer = running.post(body)
    assert answer.status == 200, answer.body
    return next(str(one["text"]) for one in answer.body["content"] if one["type"] == "text")


def going_on(running: Endpoint, *messages: Block, **others: Any) -> list[Block]:
    """Return the messages, extended by a reply and the results of its tools."""
    content = running.post(request(*messages, **others)).body["content"]
    results = [result(one["id"], "ok") for one in content if one["type"] == "tool_use"]
    said = {"role": "assistant", "content": content}
    return [*messages, said, user(*results) if results else user("Go on.")]


def test_replies_are_played_in_order_and_end_in_the_closing_text(play: Play) -> None:
    running = play('closing = "Done."\n[[reply]]\ntext = "One."\n[[reply]]\ntext = "Two."')
    messages = [user("Begin.")]
    for _ in range(4):
        messages = going_on(running, *messages)
    assert [message["content"][0]["text"] for message in messages[1::2]] == [
        "One.",
        "Two.",
        "Done.",
        "Done.",
    ]


def test_two_conversations_do_not_disturb_each_other(play: Play) -> None:
    running = play(COUNTING)
    heard: dict[str, list[str]] = {"a": [], "b": []}

    def talk(name: str) -> None:
        messages = [user(f"I am {name}.")]
        for _ in range(10):
            messages = going_on(running, *messages)
        heard[name] = [message["content"][0]["text"] for message in messages[1::2]]

    threads = [threading.Thread(target=talk, args=(name,)) for name in heard]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard["a"] == heard["b"] == [str(number) for number in range(1, 11)]


def test_a_user_id_tells_conversations_apart_that_begin_alike(play: Play) -> None:
    running = play(COUNTING)
    asked = {name: request(metadata={"user_id": name}) for name in ("a", "b")}
    assert [said(running, asked[name]) for name in ("a", "b", "a")] == ["1", "1", "2"]


def test_the_same_words_again_begin_another_conversation(play: Play) -> None:
    running = play(COUNTING)
    assert [said(running, request(user("Begin."))) for _ in range(2)] == ["1", "1"]


def test_a_conversation_is_known_by_its_tool_uses_when_all_else_was_rewritten(play: Play) -> None:
    uses = '[[reply]]\nrepeat = 9\ntext = "{n}"\ntool = [{ name = "read_file" }]'
    running = play(uses)
    messages = going_on(running, user("Begin."))
    messages = going_on(running, *messages)
    rewritten = [user("Work log: nothing.", "Begin."), *messages[3:]]
    for message in rewritten[1::2]:
        message["content"] = [one for one in message["content"] if one["type"] != "thinking"]
    assert said(running, request(*rewritten)) == "3"


def test_a_group_is_repeated_whole_and_counts_its_rounds(play: Play) -> None:
    scenario = parse(
        "[[reply]]\nrepeat = 2\n"
        '[[reply.replies]]\ntext = "a{n}"\n[[reply.replies]]\nrepeat = 2\ntext = "b{n}"\n'
        '[[reply]]\ntext = "end"'
    )
    assert [(step.entry.text, step.round) for step in steps(scenario)] == [
        ("a{n}", 1),
        ("b{n}", 1),
        ("b{n}", 2),
        ("a{n}", 2),
        ("b{n}", 1),
        ("b{n}", 2),
        ("end", 1),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            '{ a = "{n}", b = "{n*100+1}", c = "x{n}", d = "{n*2-1}" }',
            '{"a":2,"b":201,"c":"x2","d":3}',
        ),
        ('{ handle = "{handle}" }', '{"handle":"r12"}'),
        ('{ continuation_token = "{continuation_token}" }', '{"continuation_token":"r12:50-beef"}'),
        ('{ path = "{file}", list = ["{file}"] }', '{"path":"b.py","list":["b.py"]}'),
        ('{ regex = "[a-z]{3,} {unknown}" }', '{"regex":"[a-z]{3,} {unknown}"}'),
        ('{ path = "{missing}" }', '{"path":"README.md"}'),
        ("{}", "{}"),
    ],
)
def test_inputs_refer_to_the_round_and_to_earlier_results(
    play: Play, given: str, expected: str
) -> None:
    find = r"find = { file = '^(\w+\.py):', missing = 'nowhere(.)' }"
    uses = f'name = "read_file", input = {given}, {find}, otherwise = {{ path = "README.md" }}'
    running = play(f"[[reply]]\nrepeat = 2\ntool = [{{ {uses} }}]")
    messages = going_on(running, user("Begin."), tools=[TOOL])
    shown = "a.py: 1\nb.py: 2 (r3)\nShowing 2. continuation_token r12:50-beef continues."
    messages[-1]["content"][0]["content"] = shown
    reply = running.post(request(*messages)).body["content"][0]
    assert json.dumps(reply["input"], separators=(",", ":")) == expected


def test_an_entry_says_what_it_expects_of_the_request(play: Play) -> None:
    running = play('[[reply]]\nexpect_contains = "the “magic” word"\ntext = "Thanks."')
    assert "expects a request that contains 'the “magic” word'" in running.post(request()).error
    assert said(running, request(user("This is the “magic” word."))) == "Thanks."


def test_each_request_is_recorded_with_its_usage_and_without_a_key(play: Play) -> None:
    running = play('[[reply]]\nstatus = 529\n[[reply]]\ntext = "Fine."')
    running.post(request(), x_api_key="sk-very-secret")
    usage = running.post(request(), x_api_key="sk-very-secret").body["usage"]
    running.post(b"{")
    first, second, third = running.lines()
    assert (first["status"], first["usage"], first["error"]) == (529, None, "Overloaded")
    assert (second["status"], second["body"], second["usage"]) == (200, request(), usage)
    assert (third["status"], third["body"]) == (400, "{")
    assert "sk-very-secret" not in running.record.read_text(encoding="utf-8")
    assert second["times"]["received"] <= second["times"]["ended"]


@pytest.mark.parametrize("name", ["tour", "long", "greenhouse"])
def test_a_scenario_that_comes_with_the_package_is_played_to_its_end(play: Play, name: str) -> None:
    scenario = load(name)
    running = play((BUILT_IN / f"{name}.toml").read_text(encoding="utf-8"))
    messages = [user("Begin.")]
    for _ in steps(scenario):
        messages = going_on(running, *messages)
    assert running.lines()[-1]["stop_reason"] == "end_turn"
    assert {line["status"] for line in running.lines()} == {200}


def test_the_long_scenario_has_sixty_turns_of_tools_and_a_closing_one() -> None:
    played = steps(load("long"))
    assert len([step for step in played if step.entry.tool]) == 60
    assert built_in() == ["greenhouse", "long", "tour"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("reply = 5", "reply: "),
        ("[[reply]]", "it says nothing"),
        ('[[reply]]\ntext = "x"\nwhat = 1', "reply.0.what: Extra inputs are not permitted"),
        ('[[reply]]\ntext = "x"\ncut = "tool_input"', "needs a tool"),
        ('[[reply]]\ntext = "x"\nerror_event = "x"', "error_event: one of"),
        ('[[reply]]\ntext = "x"\nstop_reason = "x"', "stop_reason: Input should be"),
        ('[[reply]]\ntool = [{ name = "x", find = { a = "(" } }]', "find.a: "),
        ('[[reply]]\ntext = "x"\n[[reply.replies]]\ntext = "y"', "a group holds replies"),
        ('[[reply]]\nempty = true\ntext = "x"', "an empty reply has no text"),
        ('[[reply]]\ntext = "x"\nerror_body = "x"', "error_body needs a status"),
        ("[[reply]]\nstatus = 200", "needs an error_body"),
        ("[[reply]]\nstatus = 302", "status"),
        ("[[reply]]\nempty = true\nbig_event = 5", "big_event needs a text"),
        ('[[reply]]\ntext = "x"\nids = ["a"]\nno_ids = true', "exclude each other"),
        (
            '[[reply]]\ntool = [{ name = "x" }]\ncut = "tool_input"\ncomplete_input = true',
            "needs an input in pieces",
        ),
        ("[[reply]", "Expected"),
        (
            '[[reply]]\nrepeat = 10000\n[[reply.replies]]\nrepeat = 100\ntext = "x"',
            "at most 100,000 replies",
        ),
    ],
)
def test_a_file_with_a_mistake_is_told_where_it_is(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem.replace(".", r"\.").replace("(", r"\(")):
        parse(text)
