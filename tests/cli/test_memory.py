"""`efrit-budget memory`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.memory.observation import Draft
from efrit_budget.memory.searching import HALF_LIFE_DAYS
from efrit_budget.memory.store import MemoryStore
from efrit_budget.settings.model import Settings
from efrit_budget.storage.database import BUSY_TIMEOUT_MS
from tests.cli.command import Ended, efrit, efrit_at_a_terminal, write_config
from tests.databases import open_database


def save(title: str, content: str = "", *more: str, stdin: str = "") -> int:
    """Save something and return its number."""
    content = content or f"Text of {title}."
    saved = efrit(
        "memory", "save", "--title", title, "--content", content, *more, "--json", stdin=stdin
    )
    number: int = saved.json["id"]
    return number


def memory(*arguments: str, stdin: str | bytes = "") -> Ended:
    """Run an action."""
    return efrit("memory", *arguments, stdin=stdin)


def test_what_is_saved_is_got_again_with_all_that_was_said_of_it() -> None:
    flags = ("--project", "thesis", "--kind", "decision", "--tag", "a", "--tag", "b c")
    number = save("A title", "First.\n\nSecond.", *flags, "--importance", "0.8")
    day = memory("get", str(number), "--json").json["created_at"][:10]
    assert memory("get", str(number)).out == (
        f"#1 [decision] A title\n*{day} | importance: 0.8 | tags: a, b c*\n\nFirst.\n\nSecond.\n\n"
    )


def test_the_content_can_come_from_a_pipe() -> None:
    number = save("A title", "-", stdin="größer\n" * 5000)
    assert memory("get", str(number), "--json").json["content"] == "größer\n" * 5000


def test_the_same_topic_revises_and_the_earlier_revision_can_be_read() -> None:
    number = save("One", "The old text.", "--topic", "k")
    assert save("Two", "The new text.", "--topic", "k") == number
    assert "The old text." not in memory("get", str(number)).out
    shown = memory("get", str(number), "--revisions").out
    assert shown.endswith("The new text.\n\nRevision 1: One\n\nThe old text.\n\n")


def test_what_is_private_is_in_no_file_of_the_database(home: Path) -> None:
    save("A <private>secret-one</private> title", "Text <private>secret-two</private> goes on.")
    held = b"".join(file.read_bytes() for file in (home / "efrit" / "state").iterdir())
    assert b"goes on" in held
    assert b"secret-" not in held


def test_memories_are_listed_the_latest_first_and_counted() -> None:
    for number in range(5):
        save(f"Title {number}", "", "--project", "p" if number % 2 else "q")
    lines = memory("list", "--limit", "2").out.splitlines()
    assert [line.partition(" (")[0] for line in lines[:2]] == [
        *("#5 [note] Title 4", "#4 [note] Title 3"),
    ]
    assert lines[2].startswith("Showing 2 of 5 results.")
    found = memory("list", "--project", "p", "--json").json
    assert [one["title"] for one in found["results"]] == ["Title 3", "Title 1"]
    assert (found["returned"], found["total"]) == (2, 2)


def test_the_timeline_shows_what_was_saved_around_one() -> None:
    for number in range(1, 10):
        save(f"Title {number}")
    lines = memory("timeline", "5", "--before", "1", "--after", "2").out.splitlines()
    assert [line[:4] for line in lines[:4]] == ["  #4", "> #5", "  #6", "  #7"]
    assert lines[4] == "Showing 4 of 9 observations in session."
    alone = memory("timeline", "5", "--before", "0", "--after", "0", "--json").json
    assert (alone["before"], alone["after"], alone["focus"]["id"]) == ([], [], 5)


def test_what_is_deleted_is_found_no_more() -> None:
    number = save("A title")
    assert memory("delete", str(number), "--yes").out == "deleted: #1\n"
    ended = memory("get", str(number))
    assert (ended.code, ended.complaint) == (1, "efrit-budget: there is no memory #1\n")
    assert memory("list").out == "No memory matches.\n"


def test_nothing_is_deleted_unless_somebody_agrees() -> None:
    number = str(save("A title"))
    assert memory("delete", number).code == 1
    assert efrit_at_a_terminal("memory", "delete", number, typed="n\n").code == 1
    assert memory("get", number).code == 0
    assert efrit_at_a_terminal("memory", "delete", number, typed="y\n").code == 0
    assert memory("get", number).code == 1


def test_what_is_there_is_deleted_and_what_is_not_is_named() -> None:
    number = str(save("A title"))
    ended = memory("delete", number, "77", "--yes")
    assert (ended.code, ended.out) == (1, "deleted: #1\n")
    assert ended.complaint == "efrit-budget: there is no memory #77\n"


# Export and import


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A database with everything that memory can contain."""
    path = tmp_path / "filled.db"
    database = open_database(path)
    store = MemoryStore(database)
    first = store.save(
        Draft("One", "a\u2028b \U0001f389\x1b[1m\r\n", topic_key="k", tags=("ä", 'b"'))
    )
    store.save(Draft("One", "Again.", topic_key="k", importance=1 / 3), now=1e9 + 1 / 3)
    second = store.save(Draft("Two", "x" * 100_000, project="p", scope="personal", session="s1"))
    store.save(Draft("Three", "Text.", related=(first.id, second.id), kind="decision"))
    gone = store.save(Draft("Gone", "Words."))
    store.note_access(second.id)
    store.delete(gone.id)
    database.close()
    return path


def exported(database: Path) -> str:
    """Export a database and return its lines."""
    ended = efrit("--db", str(database), "memory", "export")
    assert (ended.code, ended.err) == (0, "")
    return ended.out


def test_an_export_is_imported_without_loss(filled: Path, tmp_path: Path) -> None:
    lines = exported(filled)
    titles = [json.loads(line)["title"] for line in lines.split("\n")[:-1]]
    assert titles == ["One", "Two", "Three", "Gone"]
    other = tmp_path / "other.db"
    ended = efrit("--db", str(other), "memory", "import", "-", stdin=lines)
    assert ended.out == "4 new, 0 updated, 0 already here\n"
    assert exported(other) == lines


def test_a_second_import_doubles_nothing(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text(exported(filled), encoding="utf-8")
    efrit("--db", str(filled), "memory", "import", str(tmp_path / "lines.jsonl"))
    assert exported(filled) == (tmp_path / "lines.jsonl").read_text(encoding="utf-8")


def test_where_numbers_are_taken_relations_lead_to_the_new_ones(
    filled: Path, tmp_path: Path
) -> None:
    other = str(tmp_path / "other.db")
    for title in ("Already", "There", "Before"):
        efrit("--db", other, "memory", "save", "--title", title, "--content", title)
    efrit("--db", other, "memory", "import", "-", stdin=exported(filled))
    titles = {one["title"]: one for one in map(json.loads, exported(Path(other)).split("\n")[:-1])}
    ends = [titles["One"]["id"], titles["Two"]["id"]]
    assert titles["Three"]["related"] == ends
    assert not set(ends) & {1, 2, 3}


def test_an_export_replaces_a_file_and_keeps_its_mode(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "memory.jsonl"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    efrit("--db", str(filled), "memory", "export", "--kind", "decision", "-o", str(target))
    assert json.loads(target.read_text(encoding="utf-8"))["title"] == "Three"
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["filled.db", "memory.jsonl"]  # noqa: PTH208


GOOD: dict[str, Any] = {
    "id": 1,
    "kind": "note",
    "project": "p",
    "scope": "project",
    "updated": 1.0,
    "importance": 0.5,
    "accesses": 0,
    "accessed": None,
    "deleted": None,
    "created": 1.0,
    "revision": 1,
    "duplicates": 0,
    "session": "",
    "tool": "",
    "topic_key": None,
    "tags": [],
    "title": "Good",
    "content": "Text.",
}


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("{", "line 2: the whole: Invalid JSON"),
        ("[1]", "line 2: the whole: "),
        (json.dumps({**GOOD, "id": "x"}), "line 2: id: "),
        (json.dumps({**GOOD, "colour": 1}), "line 2: colour: "),
        (json.dumps({**GOOD, "importance": 2}), "line 2: importance: 2 is not from 0 to 1"),
        (json.dumps({**GOOD, "updated": 1e300}), "line 2: a time is not in the years 1970 to 9999"),
        (json.dumps({**GOOD, "id": 2**70}), "line 2: "),
        (json.dumps({**GOOD, "importance": float("nan")}), "line 2: importance: "),
    ],
)
def test_a_line_that_is_no_memory_is_named_and_none_is_imported(second: str, told: str) -> None:
    ended = memory("import", "-", stdin=f"{json.dumps(GOOD)}\n{second}\n")
    assert ended.code == 1
    assert told in ended.complaint
    assert memory("list", "--json").json["total"] == 0


def test_a_line_whose_topic_is_taken_is_named() -> None:
    save("Mine", "Text.", "--topic", "k", "--project", "p")
    line = json.dumps({**GOOD, "topic_key": "k"})
    ended = memory("import", "-", stdin=line)
    assert ended.code == 1
    assert "topic_key: 'k' of project 'p' is that of #1" in ended.complaint


def test_nothing_private_comes_in_with_an_import(home: Path) -> None:
    earlier = {name: GOOD[name] for name in ("kind", "importance", "updated", "session", "tool")}
    earlier |= {"revision": 1, "tags": [], "title": "Old", "content": "<private>secret</private>"}
    line = {**GOOD, "revision": 2, "revisions": [earlier], "content": "a <private>secret</private>"}
    assert memory("import", "-", stdin=json.dumps(line)).out == "1 new, 0 updated, 0 already here\n"
    held = b"".join(file.read_bytes() for file in (home / "efrit" / "state").iterdir())
    assert b"secret" not in held


# What is wrong


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: ACTION"),
        (["save", "--title", "x"], "required: --content"),
        (
            ["save", "--title", "x", "--content", "y", "--importance", "2"],
            "not a number from 0 to 1",
        ),
        (["get", "one"], "'one' is not a whole number of at least 1"),
        (["timeline", "1", "--before", "-1"], "not a whole number of at least 0"),
        (["list", "--limit", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(arguments: list[str], told: str) -> None:
    ended = memory(*arguments)
    assert ended.code == 2
    assert told in ended.complaint


def test_what_cannot_be_kept_is_told() -> None:
    ended = memory("save", "--title", " ", "--content", "x")
    assert (ended.code, ended.out) == (1, "")
    assert "title: an observation needs a title" in ended.complaint
    long = memory("save", "--title", "x", "--content", "-", stdin="x" * 100_001)
    assert "100,001 characters" in long.complaint


def test_the_settings_say_where_memory_is(home: Path, tmp_path: Path) -> None:
    save("In the usual place")
    write_config(home, f'[storage]\ndatabase = "{tmp_path}/other.db"\n')
    assert memory("list").out == "No memory matches.\n"
    assert (tmp_path / "other.db").exists()
    write_config(home, "[storage]\nbusy_timeout = 3\n")
    assert "there is no setting storage.busy_timeout" in memory("list").complaint


def test_without_settings_memory_does_what_the_settings_would_say() -> None:
    assert Settings().storage.busy_timeout_ms == BUSY_TIMEOUT_MS
    assert Settings().memory.half_life_days == HALF_LIFE_DAYS


def test_what_is_deleted_for_good_is_in_no_export(tmp_path: Path) -> None:
    efrit("memory", "save", "--title", "Key", "--content", "quokkazebra77")
    ended = efrit("memory", "delete", "1", "--yes", "--for-good", "--json")
    assert ended.json == {"deleted": [1]}
    assert efrit("memory", "export").out == ""
