"""The alerts about the budget, and their place in the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversation.client import MODEL, PLAIN_MODEL, Client, text, thinking, words
from tests.conversation.conftest import OpenClient

NOTICE = re.compile(
    r"\[Budget Alert: ~(\d+)k tokens remaining, then older results shrink to a line each; "
    r"recall_result brings any of them back\.\]"
)
WARNING = re.compile(
    r"\[Budget Alert: ~(\d+)k tokens remaining\. Consider summarizing or completing soon\.\]"
)
SMALL: dict[str, Any] = {"total": 40_000}
"""Limits with a notice and a first warning below 8,000, and a second warning below 4,000."""
PRESSED: dict[str, Any] = {
    "total": 40_000,
    "system": 1_000,
    "history": 1_000,
    "tool_results": 16_000,
    "user_message": 10_000,
    "response": 12_000,
}


def alerts(client: Client, pattern: re.Pattern[str]) -> list[tuple[int, str, int]]:
    """Return each alert's message number and role, and the thousands that it names."""
    return [
        (number, message["role"], int(found[1]))
        for number, message in enumerate(client.messages)
        for block in message["content"]
        if block["type"] == "text" and (found := pattern.fullmatch(block["text"]))
    ]


def begin_turns(
    client: Client, model: str = MODEL, tokens: int = 1_000
) -> Iterator[dict[str, Any]]:
    """Run turns with a result each, without end, and yield the reply of each `turn/begin`."""
    for number in range(1_000):
        client.turn(words(tokens, number), message="go on" if number == 0 else None, model=model)
        yield client.begun


# The notice


@pytest.mark.parametrize("model", [MODEL, PLAIN_MODEL])
def test_the_notice_comes_once_in_an_epoch_when_the_next_compaction_is_near(
    open_client: OpenClient, model: str
) -> None:
    client = open_client(**SMALL)
    for begun in begin_turns(client, model):
        found = alerts(client, NOTICE)
        if begun["epoch"] == 3:
            break
        if begun["rewrite"] is None:
            assert (len(found) == 1) == (begun["budget"]["remaining"] < 8_000), begun["budget"]
    assert found == []


def test_the_notice_is_a_system_message_directly_after_the_user_turn(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    begun = next(begun for begun in begin_turns(client) if alerts(client, NOTICE))
    assert [message["role"] for message in begun["append"]["messages"]] == ["user", "system"]
    (_, role, thousands) = alerts(client, NOTICE)[0]
    assert role == "system"
    assert 6 <= thousands <= 7


def test_where_the_model_takes_no_system_messages_the_notice_ends_the_user_turn(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    begun = next(begun for begun in begin_turns(client, PLAIN_MODEL) if alerts(client, NOTICE))
    (message,) = begun["append"]["messages"]
    assert [block["type"] for block in message["content"]] == ["tool_result", "text"]
    assert NOTICE.fullmatch(message["content"][-1]["text"])


def test_a_larger_budget_is_noticed_at_the_threshold_of_the_settings(
    open_client: OpenClient,
) -> None:
    client = open_client(total=100_000)
    for begun in begin_turns(client, tokens=4_000):
        found = alerts(client, NOTICE)
        if found:
            break
        assert begun["budget"]["remaining"] >= 20_000
    assert begun["budget"]["remaining"] < 20_000


# The warnings


def pressed(open_client: OpenClient, model: str = MODEL) -> Client:
    """Return a session in which pins and a large user message leave less than 8,000 for good."""
    client = open_client(**PRESSED)
    client.system_text = words(2_200)
    client.turn(words(2_750, 1), words(2_750, 2), message=words(6_800, 3), model=model)
    assert client.budget()["band"] == "ample"
    for handle in ("r1", "r2"):
        client.call("worklog/pin", handle=handle)
    client.begin()
    assert client.budget()["band"] == "low", client.budget()
    return client


def left(client: Client) -> int:
    """Return the thousands of tokens that a rewrite would leave."""
    return int(client.begun["budget"]["available_for_tools"]) // 1_000


def register(client: Client, name: str) -> None:
    """Register another tool of the client, so that the next turn is a rewrite."""
    tool = {"name": name, "description": f"Do {name}.", "input_schema": {"type": "object"}}
    client.call("tools/register", tools=[tool])


def test_a_warning_is_a_system_message_as_soon_as_even_compacting_would_leave_little(
    open_client: OpenClient,
) -> None:
    client = pressed(open_client)
    assert client.begun["rewrite"] is None
    assert alerts(client, WARNING) == [(len(client.messages) - 1, "system", left(client))]
    assert not any(map(WARNING.search, client.system_texts()))


def test_the_warning_stands_in_the_system_text_from_the_next_rewrite_on(
    open_client: OpenClient,
) -> None:
    client = pressed(open_client)
    client.end(thinking(), text("I see."))
    register(client, "show_buffer")
    client.begin("go on")
    assert client.begun["rewrite"] is not None
    assert client.budget()["band"] == "low"
    assert alerts(client, WARNING) == []
    assert WARNING.fullmatch(client.system_texts()[-1])
    assert client.system[-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in client.system[0]


@pytest.mark.parametrize("as_text", [False, True])
def test_without_caching_nothing_is_marked_for_a_cache(
    open_client: OpenClient, *, as_text: bool
) -> None:
    client = open_client()
    marked = {"type": "text", "text": "Work.", "cache_control": {"type": "ephemeral"}}
    given = {"model": client.model, "system": [marked], "as_text": as_text}
    assert "cache_control" in str(client.call("turn/begin", **given, user_message="Go."))
    again = client.call("turn/begin", **given, user_message="Go.", caching=False)
    assert "cache_control" not in str(again)
    assert again["epoch"] == 1


def test_the_second_warning_comes_below_half_of_the_first_and_says_so_down_to_zero(
    open_client: OpenClient,
) -> None:
    client = pressed(open_client)
    first = left(client)
    client.end(text("I see."))
    client.turn(words(3_000, 7), message="go on")
    client.begin()
    assert client.budget()["band"] == "critical"
    warned = [(role, thousands) for _, role, thousands in alerts(client, WARNING)]
    assert warned == [("system", first), ("system", left(client))]
    client.end(text("I see."))
    client.turn(words(4_800, 8), message="go on")
    register(client, "show_buffer")
    client.begin()
    assert client.budget()["band"] == "critical"
    assert client.system_texts()[-1] == (
        "[Budget Alert: ~0k tokens remaining. Consider summarizing or completing soon.]"
    )


def test_a_model_without_system_messages_is_warned_in_the_system_text_at_once(
    open_client: OpenClient,
) -> None:
    client = open_client(**PRESSED)
    client.system_text, client.environment = words(2_200), "Emacs"
    client.turn(words(2_750, 1), words(2_750, 2), message=words(6_800, 3), model=PLAIN_MODEL)
    for handle in ("r1", "r2"):
        client.call("worklog/pin", handle=handle)
    before = client.messages
    results = {entry["handle"]: entry["state"] for entry in client.entries()}
    begun = client.begin()
    assert begun["rewrite"] is not None
    assert begun["epoch"] == 2
    _, environment, warning = client.system_texts()
    assert environment.startswith("Environment")
    assert WARNING.fullmatch(warning)
    assert [message["role"] for message in client.messages] == ["user", "assistant", "user"]
    assert client.messages[0] == before[0]
    assert client.messages[1]["content"] == [
        block for block in before[1]["content"] if block["type"] != "thinking"
    ]
    assert {entry["handle"]: entry["state"] for entry in client.entries()} == results


def test_a_warning_in_the_system_text_does_not_wait_because_a_notice_came_last(
    open_client: OpenClient,
) -> None:
    client = open_client(total=14_000, index_share=0)
    client.system_text = words(1_560)
    client.turn(words(780, 0), message="Find it.", model=PLAIN_MODEL)
    client.turn(words(780, 1))
    client.turn(*(words(780, number) for number in range(2, 5)))
    client.begin()
    assert alerts(client, NOTICE)
    client.call("worklog/pin", handle="r1")
    client.begin()
    assert client.budget()["band"] == "low"
    assert any(map(WARNING.fullmatch, client.system_texts()))


def test_a_warning_is_not_repeated_while_the_budget_wavers(open_client: OpenClient) -> None:
    client = pressed(open_client)
    for _ in range(3):
        client.end(text("I see."))
        client.begin("go on")
    assert len(alerts(client, WARNING)) == 1


def test_a_warning_is_lifted_when_there_is_room_again_and_comes_back_with_the_next_need(
    open_client: OpenClient,
) -> None:
    client = pressed(open_client)
    client.end(text("I see."))
    for handle in ("r1", "r2"):
        client.call("worklog/drop", handle=handle)
    client.begin("go on")
    assert client.budget()["band"] == "ample"
    assert not any(map(WARNING.search, client.system_texts()))
    client.end(text("I see."))
    for handle in ("r1", "r2"):
        client.call("worklog/restore", handle=handle)
        client.call("worklog/pin", handle=handle)
    client.begin("and now")
    assert client.budget()["band"] == "low"
    assert WARNING.fullmatch(client.system_texts()[-1])


def test_a_session_that_begins_with_little_left_is_warned_in_its_first_system_text(
    open_client: OpenClient,
) -> None:
    client = open_client(**PRESSED | {"user_message": 20_000, "tool_results": 6_000})
    client.system_text = words(700)
    begun = client.begin(words(13_500))
    assert begun["rewrite"] is None
    assert begun["epoch"] == 1
    assert WARNING.fullmatch(client.system_texts()[-1])
    assert alerts(client, WARNING) == []


# The person


def budget_notes(client: Client) -> list[str]:
    """Return the notes about the budget that the person gets in the turn that has begun."""
    return [note for note in client.begun["notes"] if "Budget Alert" in note]


def test_the_person_is_told_of_a_notice_in_the_turn_in_which_the_model_is(
    open_client: OpenClient,
) -> None:
    client = open_client(**SMALL)
    known = 0
    for begun in begin_turns(client):
        found = alerts(client, NOTICE)
        assert [bool(NOTICE.fullmatch(note)) for note in budget_notes(client)] == [True] * (
            len(found) - known
        )
        known = len(found)
        if begun["epoch"] == 2:
            break


def test_the_person_is_told_of_a_warning_once_wherever_it_stands(open_client: OpenClient) -> None:
    client = pressed(open_client)
    (_, _, thousands) = alerts(client, WARNING)[0]
    (note,) = filter(WARNING.fullmatch, budget_notes(client))
    assert f"~{thousands}k" in note
    client.end(thinking(), text("I see."))
    register(client, "show_buffer")
    client.begin("go on")
    assert WARNING.fullmatch(client.system_texts()[-1])
    assert not any(map(WARNING.fullmatch, budget_notes(client)))


@pytest.mark.parametrize("model", [MODEL, PLAIN_MODEL])
def test_the_person_is_told_of_a_warning_that_is_in_force_from_the_first_turn_on(
    open_client: OpenClient, model: str
) -> None:
    client = open_client(**PRESSED)
    client.system_text = words(900)
    client.begin(words(9_000), model=model)
    assert client.budget()["band"] == "ample"
    assert budget_notes(client) == []
    client = open_client(**PRESSED | {"tool_results": 4_000, "response": 24_000})
    client.system_text = words(900)
    client.begin(words(9_000), model=model)
    assert client.budget()["band"] != "ample"
    (note,) = filter(WARNING.fullmatch, budget_notes(client))
    assert note == client.system_texts()[-1]
