"""Usage: tokens read from the prompt cache, tokens written, and why the cache missed."""

from __future__ import annotations

from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from tests.demo.running import TOOL, Block, Endpoint, assistant, request, text, user

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def words(seed: str, count: int = 1000) -> str:
    """Return a text of about this many tokens."""
    return " ".join(f"{seed} word {number}" for number in range(count // 3))


def usage(running: Endpoint, body: Block, **options: Any) -> Any:
    """Return the usage of a reply."""
    answer = running.post(body, **options)
    assert answer.status == 200, answer.body
    return answer.body["usage"]


def counts(found: Any) -> tuple[int, int, int]:
    """Read, written, fresh."""
    names = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    read, written, fresh = (found[name] for name in names)
    return read, written, fresh


def test_tokens_are_the_estimate_times_a_hidden_factor(talker: Endpoint) -> None:
    said = words("factor")
    assert counts(usage(talker, request(user(said)))) == (0, 0, -(-estimate(said) * 13 // 10))


def test_what_was_marked_is_written_once_and_then_read(talker: Endpoint) -> None:
    body = request(user(words("once")), cache_control=MARK)
    first, again = usage(talker, body), usage(talker, body)
    assert counts(first)[0] == counts(first)[2] == 0
    assert counts(again) == (counts(first)[1], 0, 0)


def test_a_turn_that_is_appended_reads_the_turns_before(talker: Endpoint) -> None:
    asked = user(words("appended"))
    first = usage(talker, request(asked, cache_control=MARK))
    longer = request(asked, assistant("Yes."), user(words("more", 300)), cache_control=MARK)
    second = usage(talker, longer)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert second["cache_creation_input_tokens"] > 300
    assert second["input_tokens"] == 0


def test_a_changed_message_reads_what_stands_before_it(talker: Endpoint) -> None:
    fixed = {"system": [{**text(words("fixed")), "cache_control": MARK}], "tools": [TOOL]}
    first = usage(talker, request(user(words("a")), cache_control=MARK, **fixed))
    second = usage(talker, request(user(words("b")), cache_control=MARK, **fixed))
    assert 0 < second["cache_read_input_tokens"] < sum(counts(first))
    assert second["cache_creation_input_tokens"] > 500


@pytest.mark.parametrize("change", [{"system": "Other."}, {"model": "claude-opus-5-5"}])
def test_another_prefix_reads_nothing(talker: Endpoint, change: Block) -> None:
    body = request(user(words("prefix")), system="One.", cache_control=MARK)
    usage(talker, body)
    assert counts(usage(talker, {**body, **change}))[0] == 0


def test_a_prompt_below_the_least_is_not_cached(talker: Endpoint) -> None:
    body = request(user(words("short", 200)), cache_control=MARK)
    assert counts(usage(talker, body))[:2] == (0, 0)
    assert counts(usage(talker, body))[:2] == (0, 0)


def test_nothing_is_cached_without_a_mark(talker: Endpoint) -> None:
    body = request(user(words("unmarked")))
    assert [counts(usage(talker, body))[:2] for _ in range(2)] == [(0, 0), (0, 0)]


def test_writes_are_told_apart_by_how_long_they_are_kept(talker: Endpoint) -> None:
    system = [{**text(words("hour")), "cache_control": HOUR}]
    found = usage(talker, request(user(words("minutes")), system=system, cache_control=MARK))
    kept = found["cache_creation"]
    assert kept["ephemeral_1h_input_tokens"] > 500
    assert kept["ephemeral_5m_input_tokens"] > 500
    assert sum(kept.values()) == found["cache_creation_input_tokens"]


def test_a_mark_finds_no_entry_more_than_twenty_blocks_back(talker: Endpoint) -> None:
    asked = user(words("far"))
    usage(talker, request(asked, cache_control=MARK))
    near = user(*(f"block {number}" for number in range(20)))
    far = user(*(f"block {number}" for number in range(21)))
    assert counts(usage(talker, request(asked, far, cache_control=MARK)))[0] == 0
    assert counts(usage(talker, request(asked, near, cache_control=MARK)))[0] > 500


def test_counting_agrees_with_usage(talker: Endpoint) -> None:
    body = request(user(words("count")), tools=[TOOL], system="You work.")
    asked = {name: value for name, value in body.items() if name != "max_tokens"}
    counted = talker.post(asked, "/v1/messages/count_tokens").body["input_tokens"]
    assert counted == sum(counts(usage(talker, body)))


# Diagnostics


def diagnosed(running: Endpoint, body: Block, previous: str | None) -> Any:
    """Return the cache diagnostics of a reply."""
    asked = {**body, "diagnostics": {"previous_message_id": previous}}
    return running.post(asked).body["diagnostics"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "claude-opus-5-5"}, "model_changed"),
        ({"tools": []}, "tools_changed"),
        ({"system": "Other."}, "system_changed"),
        ({"messages": [user("Other."), assistant("a"), user("b")]}, "messages_changed"),
        ({"thinking": {"type": "between_tools"}}, "unavailable"),
    ],
)
def test_a_miss_says_why(talker: Endpoint, change: Block, reason: str) -> None:
    body = request(user(words(reason)), tools=[TOOL], system="One.", cache_control=MARK)
    before = talker.post(body).body["id"]
    found = diagnosed(talker, {**body, **change}, before)["cache_miss_reason"]
    assert found["type"] == reason
    assert reason == "unavailable" or found["cache_missed_input_tokens"] > 500


def test_a_prefix_that_goes_on_has_nothing_to_diagnose(talker: Endpoint) -> None:
    asked = user(words("goes on"))
    before = talker.post(request(asked, cache_control=MARK)).body["id"]
    longer = request(asked, assistant("Yes."), user("Go on."), cache_control=MARK)
    assert diagnosed(talker, longer, before) is None
    assert diagnosed(talker, longer, None) is None


def test_an_unknown_reply_to_compare_with_is_named_so(talker: Endpoint) -> None:
    found = diagnosed(talker, request(), "msg_unheard")
    assert found == {"cache_miss_reason": {"type": "previous_message_not_found"}}
