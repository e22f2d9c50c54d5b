"""What gives way in a rewrite, piece by piece, with costs that are easy to add up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from efrit_budget.budget.tiers import Limits, Tier
from efrit_budget.conversation.pieces import Phase, Piece, PieceKey, PieceState, UserEdit
from efrit_budget.conversation.plan import Frame, Plan, plan

LIMITS = Limits(
    total=10_000,
    tiers=dict(zip(Tier, (1_000, 2_000, 4_000, 1_000, 2_000), strict=True)),
    per_tool_default=1_000,
    per_tool={},
    floor=100,
    low_water=0.5,
    warning_threshold=1_000,
)
FRAME = Frame(
    limits=LIMITS,
    prompt_limit=100_000,
    fixed=500,
    low_water=0.5,
    recent_turns=0,
    recent_share=0.5,
    gone=0,
    title=30,
    line=10,
    lines_limit=100,
    index_limit=0,
    notice=20,
)
CURRENT = 90
"""The turn in hand, later than all others unless a test says so."""


def request(turn: int, tokens: int = 50) -> Piece:
    """Return the message at the beginning of a turn."""
    return Piece(turn, Phase.REQUEST, 0, PieceState.FULL, tokens, tokens, last_use=turn)


def reply(turn: int, tokens: int = 90, least: int = 60) -> Piece:
    """Return the reply of a turn, with its thinking or, at the least, without."""
    return Piece(turn, Phase.REPLY, 0, PieceState.FULL, tokens, least, last_use=turn)


def result(turn: int, tokens: int = 1_000, **facts: Any) -> Piece:
    """Return the result of a turn; once compressed it is a line of 40 tokens."""
    made = Piece(turn, Phase.RESULT, 1, PieceState.FULL, tokens, 40, last_use=turn)
    return replace(made, **facts)


def results_of(made: Plan) -> dict[int, str]:
    """Return the state of the first result of each turn."""
    return {key[0]: state for key, state in made.states.items() if key[1] == Phase.RESULT}


def left(made: Plan, phase: Phase) -> list[int]:
    """The turns whose pieces of a phase left."""
    gone = [key for key, state in made.states.items() if state is PieceState.GONE]
    return [turn for turn, of, _ in gone if of == phase]


def test_each_tier_is_charged_for_what_it_pays() -> None:
    notice = Piece(1, Phase.NOTICE, 0, PieceState.FULL, 70, 70, 1)
    made = plan([request(1), notice, reply(1), result(1, 700)], FRAME, CURRENT)
    assert made.used == {
        Tier.SYSTEM: 500,
        Tier.HISTORY: 60,
        Tier.TOOL_RESULTS: 700,
        Tier.USER_MESSAGE: 50,
        Tier.RESPONSE: 0,
    }
    assert (made.total, made.lines, made.fits) == (1_310, 0, True)
    assert made.states[notice.key] is PieceState.GONE
    assert made.states[reply(1).key] is PieceState.COMPRESSED


def test_a_result_that_has_shrunk_is_charged_to_the_history() -> None:
    made = plan([result(1, state=PieceState.COMPRESSED)], FRAME, CURRENT)
    assert (made.used[Tier.HISTORY], made.used[Tier.TOOL_RESULTS]) == (40, 0)


@pytest.mark.parametrize(("tokens", "shrunk"), [(1_000, []), (1_001, [1])])
def test_full_results_take_no_more_than_their_mark_the_oldest_shrink(
    tokens: int, shrunk: list[int]
) -> None:
    pieces = [result(1), result(2, tokens)]
    made = plan(pieces, FRAME, CURRENT)
    assert [turn for turn, state in results_of(made).items() if state == "compressed"] == shrunk


def test_a_result_that_was_used_lately_stays_before_a_newer_one() -> None:
    made = plan([result(1, last_use=9), result(2), result(3)], FRAME, CURRENT)
    assert results_of(made) == {1: "full", 2: "compressed", 3: "full"}


def test_what_is_pinned_or_belongs_to_the_turn_in_hand_stays() -> None:
    made = plan([result(1, pinned=True), result(2), result(3), result(4)], FRAME, 3)
    assert results_of(made) == {1: "full", 2: "compressed", 3: "full", 4: "full"}


def test_what_the_person_brought_back_may_take_its_tier_whole() -> None:
    pieces = [result(turn, wish=UserEdit.RESTORE) for turn in range(1, 6)]
    made = plan([*pieces, result(6)], FRAME, CURRENT)
    shrunk = [turn for turn, state in results_of(made).items() if state == "compressed"]
    assert shrunk == [1, 6]


def test_the_oldest_requests_leave_and_the_latest_never_does() -> None:
    pieces = [request(turn, 400) for turn in (1, 2, 3)]
    assert left(plan(pieces, FRAME, CURRENT), Phase.REQUEST) == [1]
    assert left(plan([*pieces[:2], request(3, 601)], FRAME, CURRENT), Phase.REQUEST) == [1, 2]
    made = plan([request(1, 200), request(3, 5_000)], FRAME, CURRENT)
    assert (left(made, Phase.REQUEST), made.fits) == ([1], True)


def test_a_reply_and_its_results_leave_together_for_a_line() -> None:
    pieces = [reply(1, least=1_000), result(1, 10), reply(2, least=1_000)]
    made = plan(pieces, FRAME, CURRENT)
    assert [made.states[piece.key] for piece in pieces] == ["gone", "gone", "compressed"]
    assert made.lines == 40
    assert made.used[Tier.HISTORY] == 1_040
    assert made.used[Tier.TOOL_RESULTS] == 0


@pytest.mark.parametrize(("least", "gone"), [(980, []), (981, [1])])
def test_the_history_keeps_room_for_the_alert(least: int, gone: list[int]) -> None:
    made = plan([reply(1, least=1_000), reply(2, least=least)], FRAME, CURRENT)
    assert left(made, Phase.REPLY) == gone


def test_an_exchange_is_as_young_as_its_latest_use_and_a_pin_holds_it() -> None:
    pieces = [reply(1, least=1_000), result(1, 10, last_use=50), reply(2, least=1_100)]
    assert left(plan(pieces, FRAME, CURRENT), Phase.REPLY) == [2]
    pinned = [pieces[0], result(1, 10, pinned=True), pieces[2]]
    assert left(plan(pinned, FRAME, CURRENT), Phase.REPLY) == [2]
    assert left(plan([pieces[0], pieces[2]], FRAME, CURRENT), Phase.REPLY) == [1]


@pytest.mark.parametrize(
    ("gone", "head"), [(0, 0), (1, 40), (2, 50), (7, 100), (8, 100), (1_000, 100)]
)
def test_the_lines_of_what_left_take_so_much_and_no_more(gone: int, head: int) -> None:
    made = plan([reply(1)], replace(FRAME, gone=gone), CURRENT)
    assert (made.lines, made.used[Tier.HISTORY]) == (head, 60 + head)


def test_the_index_takes_room_once_a_result_shrinks_or_leaves() -> None:
    frame = replace(FRAME, index_limit=70)
    pieces = [reply(1), result(1, 10), reply(2), result(2, 90_000)]
    history = {count: plan(pieces[:count], frame, CURRENT).used[Tier.HISTORY] for count in (2, 4)}
    assert history == {2: 60, 4: 120 + 40 + 70}
    assert plan([reply(1)], replace(frame, gone=1), CURRENT).used[Tier.HISTORY] == 60 + 40 + 70


def pieces_of_three_turns() -> list[Piece]:
    """Two turns that are over, and the turn in hand, each with a result: 2,460 tokens together."""
    return [
        piece for turn in (1, 2, 3) for piece in (request(turn), reply(turn), result(turn, 543))
    ]


@pytest.mark.parametrize(
    ("limit", "gone", "shrunk"),
    [
        (2_459, [], []),
        (2_458, [], [1]),
        (1_955, [], [1, 2]),
        (1_452, [1], [2]),
        (1_351, [1, 2], []),
    ],
)
def test_what_is_too_large_gives_way_in_a_fixed_order(
    limit: int, gone: list[int], shrunk: list[int]
) -> None:
    frame = replace(FRAME, prompt_limit=limit, low_water=1.0)
    made = plan(pieces_of_three_turns(), frame, 3)
    assert left(made, Phase.REPLY) == gone == left(made, Phase.RESULT)
    found = [turn for turn, state in results_of(made).items() if state == "compressed"]
    assert found == shrunk
    assert made.states[request(3).key] is PieceState.FULL
    assert made.fits
    assert made.total <= limit


def test_the_turn_in_hand_gives_way_last_and_the_latest_request_not_at_all() -> None:
    pieces = pieces_of_three_turns()
    made = plan(pieces, replace(FRAME, prompt_limit=750), 3)
    assert left(made, Phase.REQUEST) == [1, 2]
    assert left(made, Phase.REPLY) == [1, 2]
    assert results_of(made)[3] == "compressed"
    made = plan(pieces, replace(FRAME, prompt_limit=649), 3)
    assert left(made, Phase.REPLY) == [1, 2, 3]
    assert (left(made, Phase.REQUEST), made.fits) == ([1, 2], True)
    made = plan(pieces, replace(FRAME, prompt_limit=630), 3)
    assert (made.total, made.fits) == (630, True)
    assert not plan(pieces, replace(FRAME, prompt_limit=629), 3).fits


def test_a_line_that_points_at_a_text_shrinks_with_the_last_place_where_it_stands() -> None:
    def pointing(at: set[PieceKey]) -> Piece:
        return result(5, 100, full_copies=frozenset(at))

    first, second = result(1), result(2)
    for places, expected in [
        ({first.key}, {1: "compressed", 2: "full", 5: "compressed"}),
        ({first.key, second.key}, {1: "compressed", 2: "full", 5: "full"}),
        (set(), {1: "full", 2: "full", 5: "compressed"}),
    ]:
        made = plan([first, second, pointing(places)], FRAME, CURRENT)
        assert results_of(made) == expected
