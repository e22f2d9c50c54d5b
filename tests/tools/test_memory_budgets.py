"""Answers stay within their budget and count truly, for any memory, query and detail level."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from efrit_budget.memory.observation import Draft, Filters
from tests.connection import Connection
from tests.soak import amount
from tests.tools.conftest import Call
from tests.tools.mem import FOOTER, listed, most, paged, shown_of
from tests.tools.remembering import memory_of

SETTINGS = settings(
    max_examples=amount(8, 100),
    phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes with a real sidecar
)
WORDS = st.sampled_from(
    [
        *("needle", "hay", "the", "of", "and", "針", "иголка", "größe", "café", "x=1;"),
        *('{"k":null}', "----", "\N{WOMAN}\u200d\N{GIRL}", "#7", "⚡", "📏", "Showing\n"),
    ]
)
TEXTS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=60).map(" ".join),
    st.tuples(st.lists(WORDS, min_size=1, max_size=5), st.integers(1, 80)).map(
        lambda made: " ".join(made[0] * made[1])
    ),
    st.text(min_size=1, max_size=80),
)
DRAFTS = st.builds(
    Draft,
    title=TEXTS.map(lambda text: f"t {text}"[:300]),
    content=TEXTS.map(lambda text: f"c {text}"),
    tags=st.lists(st.sampled_from(["a", "b c", "größe"]), max_size=3).map(tuple),
    importance=st.floats(0, 1),
    session=st.sampled_from(["", "s"]),
)
QUERIES = st.one_of(TEXTS, st.just("needle"), st.just("nee* the"), st.just("the nowhere"))
LEVELS = st.sampled_from(["summary", "standard", "full"])
BUDGETS = st.one_of(st.integers(50, 200), st.integers(50, 3000))
NUMBERS = count()


def called(sidecar: Connection, root: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool in a session of its own, so that nothing stands in the window already."""
    opened = sidecar.request("session/open", root=str(root))
    found: dict[str, Any] = sidecar.request(
        "tools/call",
        session_id=opened["session_id"],
        name=tool,
        arguments=arguments,
        tool_use_id=f"use-{next(NUMBERS)}",
    )
    assert found["status"] == "success", found["text"]
    return found


def check(envelope: dict[str, Any], budget: int, total: int, limit: int) -> None:
    """Check that the text is within its budget and that its counts are true."""
    text = envelope["text"]
    text.encode()
    assert most(text) <= budget
    assert FOOTER.search(text)
    shown = listed(envelope)
    assert len(set(shown)) == len(shown) <= limit
    counts = shown_of(envelope)
    assert counts <= {(len(shown), total)}
    assert counts or len(shown) == total


@dataclass(frozen=True)
class Asked:
    """The arguments of a model's call."""

    query: str
    level: str
    budget: int
    limit: int


def different(most: int) -> st.SearchStrategy[list[Draft]]:
    """Return a strategy for drafts without duplicates."""
    return st.lists(DRAFTS, max_size=most, unique_by=lambda draft: " ".join(draft.content.split()))


def remember(home: Path, drafts: list[Draft]) -> str:
    """Save drafts in a project of their own, and give its name."""
    project = f"p{next(NUMBERS)}"
    with memory_of(home) as store:
        for draft in drafts:
            store.save(replace(draft, project=project))
    return project


@SETTINGS
@given(
    drafts=different(12),
    asked=st.builds(Asked, query=QUERIES, level=LEVELS, budget=BUDGETS, limit=st.integers(1, 12)),
)
def test_every_answer_is_within_its_budget_and_its_counts_are_true(
    sidecar: Connection, home: Path, project: Path, drafts: list[Draft], asked: Asked
) -> None:
    name = remember(home, drafts)
    with memory_of(home) as store:
        saved = store.recent(Filters(project=name), 100)
        matching = store.search(asked.query, Filters(project=name), 1).total
    shared = {"detail_level": asked.level, "max_tokens": asked.budget, "project": name}
    limit = asked.limit
    envelope = called(sidecar, project, "mem_context", **shared, limit=limit)
    check(envelope, asked.budget, len(saved), limit)
    envelope = called(sidecar, project, "mem_search", **shared, query=asked.query, limit=limit)
    check(envelope, asked.budget, matching, limit)
    for one in saved[:2]:
        around = sum(other.session == one.session for other in saved)
        beside = {"before": limit, "after": limit}
        envelope = called(sidecar, project, "mem_timeline", **shared, id=one.id, **beside)
        check(envelope, asked.budget, around, 2 * limit + 1)
        assert not listed(envelope) or one.id in listed(envelope)
        whole = called(sidecar, project, "mem_get_observation", id=one.id, max_tokens=asked.budget)
        assert most(whole["text"]) <= asked.budget


FOUND = re.compile(r"([\d,]+) of ([\d,]+) (?:artifacts|findings)")


def documents(root: Path, texts: list[str]) -> None:
    """Write documents of a project and of a change."""
    (root / "docs" / "changes" / "one").mkdir(parents=True)
    for number, text in enumerate(texts):
        place = "docs/changes/one" if number % 2 else "docs"
        (root / place / f"{number}.md").write_text(text, "utf-8", "surrogatepass")


def within_budget(envelope: dict[str, Any], budget: int) -> dict[str, Any]:
    """Check that an answer's text keeps to its budget, and return its data."""
    assert most(envelope["text"]) <= budget
    assert FOOTER.search(envelope["text"])
    data: dict[str, Any] = envelope["data"]
    return data


@SETTINGS
@given(drafts=different(8), query=QUERIES, level=LEVELS, budget=BUDGETS)
def test_packs_and_counts_are_within_their_budget_too(
    sidecar: Connection,
    home: Path,
    project: Path,
    drafts: list[Draft],
    *,
    query: str,
    level: str,
    budget: int,
) -> None:
    of = {"project": remember(home, drafts), "max_tokens": budget}
    for asked in ("", query):
        data = within_budget(called(sidecar, project, "context_pack", query=asked, **of), budget)
        with memory_of(home) as store:
            total = store.search(asked, Filters(project=str(of["project"])), 1).total
        assert len(data["memories"]) + data["left_out"] == total
    within_budget(
        called(sidecar, project, "mem_stats", max_tokens=budget, detail_level=level), budget
    )


@SETTINGS
@given(
    texts=st.lists(TEXTS, max_size=6),
    asked=st.builds(Asked, query=QUERIES, level=LEVELS, budget=BUDGETS, limit=st.integers(1, 100)),
)
def test_answers_about_documents_are_within_their_budget_too(
    sidecar: Connection,
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    asked: Asked,
) -> None:
    root = tmp_path_factory.mktemp("documents")
    documents(root, texts)
    shared = {"max_tokens": asked.budget, "detail_level": asked.level, "limit": asked.limit}
    change = {"change_description": f"needle {asked.query}"[:9999]}
    for tool, arguments in (("sdd_get_context", {}), ("sdd_context_check", change)):
        envelope = called(sidecar, root, tool, **shared, **arguments)
        data = within_budget(envelope, asked.budget)
        shown = len(data.get("artifacts", data.get("findings", [])))
        told = {(int(some), int(whole)) for some, whole in FOUND.findall(envelope["text"])}
        assert told <= {(shown, data["total"])}
        assert told or shown == data["total"] or not shown


@SETTINGS
@given(drafts=different(10), level=LEVELS, allowance=st.integers(200, 2000))
def test_pages_are_disjoint_and_complete(
    sidecar: Connection, home: Path, project: Path, drafts: list[Draft], level: str, allowance: int
) -> None:
    name = remember(home, drafts)
    with memory_of(home) as store:
        saved = list(store.every(Filters(project=name)))
        best = store.search("needle the", Filters(project=name), 100).candidates
    asked: dict[str, Any] = {"project": name, "detail_level": level}
    pages = [*paged(sidecar, project, "mem_context", allowance, limit=100, **asked)]
    assert sorted(together(pages)) == [one.id for one in saved]
    pages = [
        *paged(sidecar, project, "mem_search", allowance, query="needle the", limit=100, **asked)
    ]
    assert together(pages) == [one.observation.id for one in best]
    for focus in saved[:2]:
        around = [one.id for one in saved if one.session == focus.session]
        beside = {"before": 20, "after": 20, "id": focus.id}
        shown = [*paged(sidecar, project, "mem_timeline", allowance, **beside, **asked)]
        assert sorted(together(shown)) == around
        assert focus.id in listed(shown[0])


def together(pages: list[dict[str, Any]]) -> list[int]:
    """Return the numbers listed on all pages."""
    return [number for envelope in pages for number in listed(envelope)]


READ_TOOLS: dict[str, dict[str, Any]] = {
    "mem_search": {"query": "needle"},
    "mem_context": {},
    "mem_timeline": {"id": 1},
    "mem_get_observation": {"id": 1},
    "mem_stats": {},
    "context_pack": {},
    "sdd_get_context": {},
    "sdd_context_check": {"change_description": "parser"},
}


@pytest.mark.parametrize("max_tokens", [49, 30, 10, 1, 0, -5])
@pytest.mark.parametrize("tool", READ_TOOLS)
def test_a_budget_below_the_least_says_the_least_and_keeps_to_it(
    call: Call, tool: str, max_tokens: int
) -> None:
    envelope = call(tool, max_tokens=max_tokens, **READ_TOOLS[tool])
    assert envelope["status"] == "error"
    assert envelope["text"].splitlines()[0] == f"§ {tool}: max_tokens: at least 50"
    assert most(envelope["text"]) <= 50


@pytest.mark.parametrize("budget", [49, 0, -5])
def test_token_budget_says_the_least_likewise(call: Call, budget: int) -> None:
    envelope = call("mem_search", query="needle", token_budget=budget, max_tokens=60)
    assert envelope["text"].splitlines()[0] == "§ mem_search: token_budget: at least 50"
    assert most(envelope["text"]) <= 60


@pytest.mark.parametrize("tool", READ_TOOLS)
def test_every_tool_that_reads_takes_the_same_arguments(call: Call, tool: str) -> None:
    call("mem_save", title="Needle", content="One.")
    shared = {"project": "project", "max_tokens": 500, "scope": "project"}
    if tool != "context_pack":
        shared |= {"detail_level": "summary", "limit": 3}
    envelope = call(tool, **{**READ_TOOLS[tool], **shared})
    assert envelope["status"] == "success", envelope["text"]
