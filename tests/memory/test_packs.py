"""Context packs: the format to the letter, and within the budget whatever is in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import dearest, plain_tokens, plain_tokens_ceil
from efrit_budget.memory.observation import Draft, Filters
from efrit_budget.memory.packing import Form, Pack, PackText
from efrit_budget.memory.packing import pack as pack_of
from efrit_budget.memory.packs import (
    CANDIDATES,
    ListJson,
    ListLines,
    Markdown,
    PackJson,
    context_pack,
)
from efrit_budget.memory.store import MemoryStore
from tests.databases import empty_memory
from tests.soak import amount

COST = dearest(estimate)
THESIS = Filters(project="thesis")
TENTH, TWELFTH = 1_770_681_600.0, 1_770_854_400.0
FLOW = Draft(
    "Authentication flow with JWT tokens",
    "Full content of the memory here...",
    project="thesis",
    kind="decision",
    tags=("auth", "jwt"),
    importance=0.8,
)
RACE = Draft(
    "Token rotation race condition",
    "Full content here...",
    project="thesis",
    kind="fix",
    tags=("auth", "bugfix"),
    importance=0.7,
)


def packed(
    store: MemoryStore,
    budget: int = 2000,
    form: Form | None = None,
    query: str = "",
    filters: Filters = THESIS,
) -> PackText:
    """Write a pack of the project's memories."""
    return context_pack(store, query, filters, budget, form or Markdown(), COST)


def titles(written: PackText) -> list[str]:
    """Return the titles of the memories in a pack."""
    return [memory.title for memory in written.pack.memories]


def test_a_pack_is_a_heading_and_each_memory_whole_between_rules(store: MemoryStore) -> None:
    store.save(RACE, now=TENTH)
    store.save(FLOW, now=TWELFTH)
    written = packed(store)
    assert written.text == (
        f"# Project Context: thesis (2 memories, ~{written.tokens} tokens)\n"
        "\n"
        "## [decision] Authentication flow with JWT tokens\n"
        "*2026-02-12 | importance: 0.8 | tags: auth, jwt*\n"
        "\n"
        "Full content of the memory here...\n"
        "\n"
        "---\n"
        "\n"
        "## [fix] Token rotation race condition\n"
        "*2026-02-10 | importance: 0.7 | tags: auth, bugfix*\n"
        "\n"
        "Full content here..."
    )
    assert written.tokens == COST(written.text)


def test_as_json_a_pack_has_whole_memories_and_what_they_cost_as_json(store: MemoryStore) -> None:
    number = store.save(FLOW, now=TENTH).id
    written = packed(store, form=PackJson())
    assert json.loads(written.text) == {
        "memories": [
            {
                "id": number,
                "kind": "decision",
                "title": FLOW.title,
                "tags": ["auth", "jwt"],
                "importance": 0.8,
                "project_id": "thesis",
                "scope": "project",
                "created_at": "2026-02-10T00:00:00+00:00",
                "updated_at": "2026-02-10T00:00:00+00:00",
                "content": FLOW.content,
            }
        ],
        "total_tokens": COST(written.text),
        "budget": 2000,
        "project_id": "thesis",
        "left_out": 0,
        "skipped": [],
    }


def test_a_memory_without_tags_has_no_word_on_tags_and_all_projects_are_called_all(
    store: MemoryStore,
) -> None:
    store.save(Draft("Bare", "Text."), now=TENTH)
    written = packed(store, filters=Filters())
    assert written.text.startswith("# Project Context: all (1 memories, ~")
    assert "*2026-02-10 | importance: 0.5*" in written.text


@pytest.mark.parametrize("form", [Markdown(), PackJson(), ListLines(), ListJson()])
@pytest.mark.parametrize("budget", [0, 2000])
def test_a_pack_of_nothing_is_still_a_whole_answer(
    store: MemoryStore, form: Form, budget: int
) -> None:
    written = packed(store, budget, form)
    assert written.pack.memories == ()
    if isinstance(form, Markdown):
        assert re.fullmatch(r"# Project Context: thesis \(0 memories, ~\d+ tokens\)", written.text)
    elif isinstance(form, ListLines):
        assert written.text.startswith("No memory matches.\n📏 ~")
    else:
        assert json.loads(written.text)["budget"] == budget


def test_a_budget_that_ends_mid_way_keeps_the_best_and_counts_the_rest(store: MemoryStore) -> None:
    for number in range(9):
        store.save(
            Draft(f"Note {number}", f"{number} " * 100, project="thesis"), now=TENTH + number
        )
    written = packed(store, 600)
    shown = len(written.pack.memories)
    assert titles(written) == [f"Note {number}" for number in range(8, 8 - shown, -1)]
    assert 0 < shown < 9
    assert f"*Left out: {9 - shown} of 9" in written.text


def test_a_memory_too_long_for_any_pack_is_named_and_those_behind_it_are_packed(
    store: MemoryStore,
) -> None:
    store.save(Draft("Small", "It fits.", project="thesis"), now=TENTH)
    store.save(Draft("Big one", "word " * 5000, project="thesis", kind="fix"), now=TWELFTH)
    written = packed(store, 200)
    assert titles(written) == ["Small"]
    assert re.search(r"\*Left out: 1 of 2: \[fix\] Big one \(~\d{4} tokens\)\*$", written.text)
    skipped = json.loads(packed(store, 300, PackJson()).text)["skipped"]
    assert [one["title"] for one in skipped] == ["Big one"]


def test_one_memory_too_long_leaves_its_name(store: MemoryStore) -> None:
    store.save(Draft("Big one", "x" * 10_000, project="thesis"))
    written = packed(store, 100)
    assert titles(written) == []
    assert "Left out: 1 of 1: [note] Big one (~" in written.text


def test_no_more_than_fifty_are_tried_and_all_that_match_are_counted(store: MemoryStore) -> None:
    for number in range(CANDIDATES + 10):
        store.save(Draft(f"Note {number}", f"Short {number}.", project="thesis"))
    written = packed(store, 1_000_000)
    assert len(written.pack.memories) == CANDIDATES
    assert written.text.endswith("*Left out: 10 of 60*")


def test_filters_choose_before_the_fifty_are_taken(store: MemoryStore) -> None:
    store.save(Draft("Mine", "Words.", project="thesis", kind="fix", tags=("a", "b")), now=TENTH)
    for number in range(200):
        store.save(Draft(f"Note {number}", f"Words {number}.", project="other", importance=1.0))
    for number in range(200):
        store.save(Draft(f"Of mine {number}", f"Words {number}.", project="thesis", importance=1.0))
    filters = Filters(project="thesis", kind="fix", tags=("a",))
    assert titles(packed(store, query="words", filters=filters)) == ["Mine"]
    assert titles(packed(store, filters=filters)) == ["Mine"]


def test_a_query_that_no_memory_holds_whole_finds_those_that_hold_a_part(
    store: MemoryStore,
) -> None:
    store.save(FLOW)
    written = packed(store, form=ListLines(), query="authentication by smoke signals")
    assert written.text.startswith("No memory holds every word; these hold some of them.\n#1 [deci")


DRAFTS = st.lists(
    st.builds(
        Draft,
        title=st.text(min_size=1, max_size=60).filter(str.strip),
        content=st.one_of(
            st.text(min_size=1, max_size=300),
            st.sampled_from(
                ["word " * 40, "日本語の文章です。" * 30, "привет мир " * 30, "🎉" * 99]
            ),
        ).filter(str.strip),
        project=st.just("thesis"),
        tags=st.lists(st.sampled_from(["auth", "jwt", "größe"]), unique=True).map(tuple),
        importance=st.floats(0, 1),
    ),
    max_size=12,
)


@contextmanager
def holding(drafts: list[Draft]) -> Iterator[MemoryStore]:
    """Yield a memory that contains these drafts."""
    with empty_memory() as store:
        for draft in drafts:
            store.save(draft)
        yield store


@pytest.mark.parametrize("form", [Markdown(), PackJson(), ListLines(), ListJson()])
@settings(max_examples=amount(8, 100))
@given(DRAFTS, st.integers(60, 1500))
def test_the_whole_text_is_within_its_budget_however_it_is_counted(
    form: Form, drafts: list[Draft], budget: int
) -> None:
    with holding(drafts) as store:
        written = packed(store, budget, form)
        total = store.count()
    text = written.text
    assert max(estimate(text), plain_tokens(text), plain_tokens_ceil(text)) <= budget
    assert len(written.pack.memories) + written.pack.left_out == total
    assert text.encode().decode() == text


OVERSIZE = st.builds(
    Draft,
    title=st.sampled_from(["Big", "A long title that goes on and on " * 9, "長い題名" * 50]),
    content=st.integers(0, 9).map(lambda digit: f"{digit} said again and again. " * 800),
    project=st.just("thesis"),
    importance=st.just(1.0),
)


@pytest.mark.parametrize("form", [Markdown(), PackJson(), ListLines(), ListJson()])
@settings(max_examples=amount(8, 100))
@given(st.lists(OVERSIZE, max_size=8), DRAFTS, st.integers(20, 700))
def test_no_pack_is_empty_while_one_of_its_candidates_alone_would_fit(
    form: Form, oversize: list[Draft], drafts: list[Draft], budget: int
) -> None:
    with holding([*drafts, *oversize]) as store:
        found = store.search("", THESIS, CANDIDATES)
    candidates = [each.observation for each in found.candidates]
    whole = pack_of(Pack(found.total, budget, "thesis"), candidates, form, COST)
    of = found.total if isinstance(form, PackJson | ListJson) else 1  # JSON says it in any case
    alone = [pack_of(Pack(of, budget, "thesis"), [one], form, COST) for one in candidates]
    assert whole.pack.memories or not any(one.pack.memories for one in alone)


@pytest.mark.parametrize("budget", range(44, 80))
def test_one_that_fits_alone_is_packed_though_another_does_not_fit(
    store: MemoryStore, budget: int
) -> None:
    small = Draft("Small", "It fits." * 6, project="thesis")
    store.save(small, now=TENTH)
    store.save(Draft("Big one", "word " * 5000, project="thesis"), now=TWELFTH)
    with holding([small]) as alone:
        fits = bool(packed(alone, budget).pack.memories)
    written = packed(store, budget)
    assert titles(written) == ["Small"] or not fits
    assert COST(written.text) <= max(budget, COST(packed(store, 0).text))
    assert written.pack.left_out == 2 - len(titles(written))


def test_names_are_paid_from_what_the_memories_leave(store: MemoryStore) -> None:
    for number in range(49):
        store.save(
            Draft(f"{number} {'A long title ' * 9}", f"note {number} " * 4000, project="thesis"),
            now=TWELFTH + number,
        )
    story = Draft("Recovery", "It recovers by skipping to the next token. " * 90, project="thesis")
    store.save(story, now=TENTH)
    written = packed(store)
    assert titles(written) == ["Recovery"]
    assert 0 < len(written.pack.named) < 49
    assert "*Left out: 49 of 50: [note] 48 A long title" in written.text


def test_a_first_line_keeps_its_indentation(store: MemoryStore) -> None:
    store.save(Draft("Code", "\n    first\n  second\n\n", project="thesis"))
    assert packed(store).text.endswith("*\n\n    first\n  second")


@settings(max_examples=amount(8, 100))
@given(DRAFTS, st.integers(60, 1500))
def test_nothing_that_would_still_fit_is_left_out(drafts: list[Draft], budget: int) -> None:
    with holding(drafts) as store:
        written = packed(store, budget)
        candidates = [each.observation for each in store.search("", THESIS, CANDIDATES).candidates]
    alone = [one for one in candidates if COST(packed_alone(one.title, one.content)) + 40 <= budget]
    assert bool(written.pack.memories) or not alone


def packed_alone(title: str, content: str) -> str:
    """Return a text slightly longer than a pack of one memory."""
    return f"# Project Context: thesis (1 memories, ~1000 tokens)\n## [note] {title}\n{content}"
