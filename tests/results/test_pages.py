"""A result that is too long for its allowance is delivered in pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from efrit_budget.budget.estimate import estimate
from tests.conversation.client import Client
from tests.conversation.recalled import TAIL, is_same, read
from tests.conversation.texts import KINDS_OF_TEXT, Kind
from tests.soak import amount

FIRST_FACTOR = 1.3
"""The real tokens assumed for one estimated token before any reply was seen."""
ALLOWANCES = st.sampled_from([150, 200, 400, 1_000, 3_000, 8_000])
FEW = settings(max_examples=amount(8, 100))
ROOMY = {"total": 10_000_000, "per_tool_default": 1_000_000}


@given(kind=KINDS_OF_TEXT.filter(lambda kind: kind.size < 100_000), allowance=ALLOWANCES)
@example(kind=Kind("emoji", 6_000), allowance=150)
@FEW
def test_the_pages_of_a_text_are_the_text_and_each_is_within_its_allowance(
    client: Client, kind: Kind, allowance: int
) -> None:
    client.open_session(**ROOMY)
    allowance = max(allowance, kind.size // 20)
    handle = client.record("use", kind.text, arguments={"max_tokens": 50})["handle"]
    found = read(client, handle, kind.text, most_pages=150, max_tokens=allowance)
    assert found.returned == found.total
    for envelope in client.entries():
        assert envelope["tokens"] <= max(50, allowance)


@given(kind=KINDS_OF_TEXT, allowance=st.integers(50, 3_000))
@FEW
def test_the_figure_in_the_footer_is_what_the_whole_delivered_text_costs(
    client: Client, kind: Kind, allowance: int
) -> None:
    client.open_session(**ROOMY)
    envelope = client.record("use", kind.text, arguments={"max_tokens": allowance})
    assert envelope["tokens"] == math.ceil(estimate(envelope["text"]) * FIRST_FACTOR)
    assert f"📏 ~{envelope['tokens']:,} tokens" in envelope["text"].splitlines()[-1]
    assert envelope["tokens"] <= allowance


@dataclass
class Folders:
    """The folders and files that the catalogue lists."""

    max_files: int
    per_folder: int
    longest: int = 0

    def item(self, file: int) -> str:
        """Return the line of a file in the listing."""
        padding = " x" * (self.longest // 2) if file % 7 == 3 else ""
        return f"  file-{file}.el  {file * 37:,} bytes{padding}\n"

    def header(self, file: int) -> str:
        """Return the header above the files of a folder."""
        return f"folder-{file // self.per_folder}/\n"

    def text(self) -> str:
        """Return the whole listing."""
        parts = []
        for file in range(self.max_files):
            parts += [self.header(file)] * (file % self.per_folder == 0) + [self.item(file)]
        return "".join(parts)


@given(
    folders=st.builds(Folders, st.integers(1, 400), st.integers(1, 60)),
    allowance=st.sampled_from([150, 300, 900, 4_000]),
)
@FEW
def test_the_pages_of_a_listing_hold_each_item_once_under_its_header(
    client: Client, folders: Folders, allowance: int
) -> None:
    pages = listed(client.open_session(**ROOMY), folders, allowance)
    seen: list[str] = []
    for page in pages:
        lines = page["text"].splitlines(keepends=True)
        assert lines[0].startswith("folder-")
        header = ""
        for line in lines[: -1 if page is pages[-1] else -2]:
            if line.startswith("  "):
                assert header.replace(" (continued)", "") == folders.header(len(seen)), line
                seen.append(line)
            else:
                assert line.endswith(" (continued)\n") == (
                    line is lines[0] and is_inside(folders, seen)
                )
                header = line
        assert page["tokens"] <= allowance
    assert seen == [folders.item(file) for file in range(folders.max_files)]


def is_inside(folders: Folders, seen: list[str]) -> bool:
    """Return whether the next item lies in the same folder as the last one."""
    return len(seen) % folders.per_folder != 0


@given(
    folders=st.builds(Folders, st.integers(1, 300), st.integers(1, 60)),
    allowance=st.sampled_from([150, 500, 2_000]),
)
@FEW
def test_what_is_returned_and_what_is_left_make_the_total(
    client: Client, folders: Folders, allowance: int
) -> None:
    done = 0
    for page in listed(client.open_session(**ROOMY), folders, allowance):
        data = page["data"]
        assert data["returned"] == len(data["files"])
        assert data["files"][:1] == [f"file-{done}.el"]
        done += data["returned"]
        assert data["total"] == folders.max_files
        if "continuation_token" in data:
            assert f"Showing {data['returned']:,} of {folders.max_files:,} files." in page["text"]
            assert data["budget_note"].startswith(f"{data['returned']:,} of {folders.max_files:,}.")
        else:
            assert "Showing" not in page["text"]
    assert done == folders.max_files


@given(longest=st.integers(2_000, 30_000), allowance=st.sampled_from([200, 700, 3_000]))
@FEW
def test_an_item_longer_than_a_page_is_cut_and_those_behind_it_follow(
    client: Client, longest: int, allowance: int
) -> None:
    folders = Folders(12, 5, longest)
    pages = listed(client.open_session(**ROOMY), folders, allowance)
    parts = []
    for page in pages:
        text = page["text"]
        tail = next(found for found in TAIL.finditer(text) if found.end() == len(text))
        lines = text[: tail.start()].split("\n", 1)
        is_repeated = lines[0].endswith(" (continued)")
        parts.append(lines[1] if is_repeated else text[: tail.start()])
        assert page["tokens"] <= allowance
    assert "".join(parts).replace("\n", "") == folders.text().replace("\n", "")
    assert sum(page["data"]["returned"] for page in pages) == 12


def listed(client: Client, folders: Folders, allowance: int) -> list[dict[str, Any]]:
    """Return the pages of a listing in order."""
    arguments = {
        "max_files": folders.max_files,
        "per_folder": folders.per_folder,
        "longest": folders.longest,
    }
    pages = [client.use("catalogue", max_tokens=allowance, **arguments)]
    while (token := pages[-1]["data"].get("continuation_token")) is not None:
        page = client.use("catalogue", continuation_token=token, max_tokens=allowance)
        assert not is_same(page)
        assert page["data"].get("continuation_token") != token, "no progress"
        pages.append(page)
    return pages


def test_a_page_of_a_single_long_line_says_that_it_shows_a_part(client: Client) -> None:
    envelope = client.open_session().record("use", "word " * 40_000)
    assert "Showing 1 of 1 lines." in envelope["text"]
    later = client.use("recall_result", continuation_token=envelope["data"]["continuation_token"])
    assert "Showing a part of one of 1 lines." in later["text"]
    assert later["data"]["returned"] == 0


def test_a_page_says_when_its_file_changed_since_it_was_stored(client: Client) -> None:
    file = client.root / "notes.txt"
    file.write_text("a line of it\n" * 9_000, encoding="utf-8")
    first = client.open_session().use("reader", path="notes.txt")
    token = first["data"]["continuation_token"]
    second = client.use("reader", continuation_token=token)
    file.write_text("another text\n", encoding="utf-8")
    third = client.use("reader", continuation_token=second["data"]["continuation_token"])
    assert "Changed since" not in first["text"] + second["text"]
    assert "Changed since this was stored: notes.txt.\n" in third["text"]
    assert third["data"]["changed_since"] == ["notes.txt"]
    assert third["text"].startswith("a line of it\n")


def test_a_result_that_is_recalled_says_that_its_file_is_gone(client: Client) -> None:
    file = client.root / "notes.txt"
    file.write_text("a line of it\n" * 100, encoding="utf-8")
    first = client.open_session().use("reader", path="notes.txt")
    file.unlink()
    again = client.use("recall_result", handle=first["handle"])
    assert "Changed since this was stored: notes.txt.\n" in again["text"]
    assert again["data"]["changed_since"] == ["notes.txt"]
