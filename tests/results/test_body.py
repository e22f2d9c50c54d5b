"""The offsets of a result's items."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.results.body import Body, Source, of_items, preceded
from efrit_budget.results.delivery import deliver
from efrit_budget.results.encoding import packed_marks, packed_text, unpacked
from efrit_budget.results.footer import Terms

LINES = st.text(st.sampled_from("ab\n\r\t é"), max_size=60)
MEMBERS = st.lists(st.tuples(st.text(st.sampled_from("xyz "), min_size=1), st.integers()))
GROUPS = st.lists(st.tuples(st.none() | st.text(st.sampled_from("hH"), min_size=1), MEMBERS))


@given(LINES, st.lists(st.integers(0, 60), max_size=4))
def test_the_lines_of_stretches_that_make_up_a_text_are_the_lines_of_the_text(
    text: str, cuts: list[int]
) -> None:
    body = Body(text)
    ends = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    counts = [body.count(start, end) for start, end in pairwise(ends)]
    assert sum(counts) == body.whole_count == len(text.split("\n")) - (text[-1:] in ("", "\n"))


@given(GROUPS, st.integers(0, 200))
def test_items_are_counted_where_they_begin_and_carry_their_own_data(
    groups: list[tuple[str | None, list[tuple[str, int]]]], cut: int
) -> None:
    body = of_items("things", groups, kind="made up")
    cut = min(cut, len(body.text))
    facts = [fact for _, members in groups for _, fact in members]
    before, after = body.data_of(0, cut), body.data_of(cut, len(body.text))
    if facts:
        assert [*before["things"], *after["things"]] == facts
        assert len(before["things"]) == body.count(0, cut)
    else:
        assert before["things"] == []
    assert before["kind"] == "made up"
    assert body.whole_count == len(facts)


@given(GROUPS, st.integers(0, 9) | st.none())
def test_a_body_is_the_same_when_it_is_read_again(
    groups: list[tuple[str | None, list[tuple[str, int]]]], total: int | None
) -> None:
    made = of_items("things", groups, kind="made up")
    body = replace(
        made,
        total=total,
        most=7,
        sources=(Source("a.el", 5, 6),),
        more={"path": "a.el"},
        position="Lines 1-2.",
        content=({"type": "image"},),
        content_tokens=5,
    )
    assert unpacked(packed_text(body), packed_marks(body)) == body


@given(st.dictionaries(st.sampled_from(["", "a/", "a/b/", "ä/"]), st.integers(1, 5), min_size=1))
def test_the_data_of_a_tree_are_the_paths_its_folders_and_names_make(
    folders: dict[str, int],
) -> None:
    groups = [
        (folder or None, [(f" f{number}", None) for number in range(count)])
        for folder, count in sorted(folders.items())
    ]
    made = of_items("files", groups)
    body = replace(made, item_data=(), tree=True)
    paths = [f"{folder or ''}{name.strip()}" for folder, members in groups for name, _ in members]
    assert body.data_of(0, len(body.text)) == {"files": paths}
    for first in range(len(paths)):
        start = body.items[first]
        assert body.data_of(start, len(body.text))["files"] == paths[first:]
        assert body.data_of(start, start + 1)["files"] == paths[first : first + 1]


def test_the_data_of_numbered_lines_are_their_files_numbers_and_texts() -> None:
    groups = [
        ("a.py", [("3:x: 1", None), ("7, column 900:…y…", None)]),
        ("b.py (unsaved buffer)", [("1::", None)]),
    ]
    body = replace(of_items("matches", groups), item_data=(), numbered=True)
    again = unpacked(packed_text(body), packed_marks(body))
    assert again.data_of(0, len(body.text))["matches"] == [
        {"path": "a.py", "line": 3, "text": "x: 1"},
        {"path": "a.py", "line": 7, "column": 900, "text": "…y…"},
        {"path": "b.py", "line": 1, "text": ":"},
    ]


def test_a_quoted_name_of_a_tree_is_a_whole_path() -> None:
    body = Body('a/\n b\n "a/c\\nd"\n', "files", items=(3, 6), headers=(0,), tree=True)
    assert body.data_of(0, len(body.text)) == {"files": ["a/b", '"a/c\\nd"']}


@given(st.text())
def test_a_plain_text_is_the_same_when_it_is_read_again(text: str) -> None:
    assert unpacked(packed_text(Body(text)), packed_marks(Body(text))) == Body(text)


def test_a_source_has_changed_when_its_size_or_time_has_or_it_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "a.el"
    file.write_text("one")
    found = file.stat()
    source = Source("a.el", found.st_mtime_ns, found.st_size)
    assert not source.changed(tmp_path)
    assert Source("a.el", found.st_mtime_ns - 1, found.st_size).changed(tmp_path)
    assert Source("a.el", found.st_mtime_ns, 4).changed(tmp_path)
    file.unlink()
    assert source.changed(tmp_path)


def pages_of(body: Body, allowance: int) -> list[str]:
    """Return all pages of a body, with a token for each character."""
    terms = Terms("s", allowance, len, None)
    pages, start = [], 0
    while start < len(body.text):
        delivery = deliver(body, 1, start, terms, ())
        assert delivery.end > start
        pages.append(delivery.text)
        start = delivery.end
    return pages


def test_lines_before_the_first_item_are_paged_by_lines() -> None:
    summary = "".join(f"file {number}\n" for number in range(100))
    body = preceded(summary, of_items("hunks", [("a", [("one", None), ("two", None)])]))
    first, *others = pages_of(body, 400)
    assert first.splitlines()[-2].startswith("§ Showing none yet of 2 hunks. continuation_token ")
    kept = "".join("\n".join(page.splitlines()[:-2]) + "\n" for page in [first, *others[:-1]])
    assert body.text.startswith(kept)
    assert others[-1].splitlines()[-4:-1] == ["a", "one", "two"]


def test_an_item_of_many_lines_that_is_longer_than_a_page_is_cut_between_lines() -> None:
    item = "\n".join(f"+ line {number}" for number in range(100))
    pages = pages_of(of_items("hunks", [("a.py", [(item, None)])]), 400)
    assert pages[0].splitlines()[0] == "a.py"
    lines = [line for page in pages for line in page.splitlines() if line.startswith("+")]
    assert lines == item.splitlines()
    assert all(page.splitlines()[0] == "a.py (continued)" for page in pages[1:])


def test_a_page_shows_no_more_items_than_a_body_says_and_ends_before_a_header() -> None:
    groups = [(f"{folder}/", [(name, None) for name in "abc"]) for folder in "xyz"]
    body = replace(of_items("names", groups), most=3)
    pages = [page.partition("§ Showing")[0].partition("📏")[0] for page in pages_of(body, 10_000)]
    assert pages == ["x/\na\nb\nc\n", "y/\na\nb\nc\n", "z/\na\nb\nc\n"]
    two = pages_of(replace(body, most=2), 10_000)
    assert two[1].startswith("x/ (continued)\nc\ny/\na\n§ Showing 2 of 9 names.")


def test_a_page_is_not_left_empty_because_a_long_item_does_not_fit() -> None:
    item = "\n".join(f"+ line {number}" for number in range(100))
    body = preceded("1 file\n\n", of_items("hunks", [("a.py", [(item, None)])]))
    first = pages_of(body, 400)[0]
    assert first.startswith("1 file\n\na.py\n+ line 0\n+ line 1\n")


def test_the_line_on_a_budget_tells_the_figure_of_the_footer_and_is_counted_in_it() -> None:
    terms = Terms("s", 400, len, None, budget_line=lambda tokens: f"~{tokens:,}/400 used.")
    delivery = deliver(Body("one\ntwo\n"), 1, 0, terms, ())
    assert delivery.text == f"one\ntwo\n~{delivery.tokens}/400 used.\n📏 ~{delivery.tokens} tokens"
    assert len(delivery.text) == delivery.tokens
