"""Private text is never written to disk, whatever way it came."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.memory.observation import Draft, Revision
from efrit_budget.memory.private import public, without_private
from efrit_budget.memory.store import MemoryStore
from efrit_budget.memory.transfer import imported, records
from tests.connection import Connection
from tests.conversation.client import Client, text
from tests.databases import open_database

SECRET = "hunter2x"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a <private>word</private> b", "a [private] b"),
        ("<PRIVATE>word</Private>", "[private]"),
        ("a <private>word\nword</private>b<private>word</private>", "a [private]b[private]"),
        ("a <private>x<private>word</private>word</private> b", "a [private] b"),
        ("a <private>never closed word", "a [private]"),
        ("a word</private> never opened", "[private] never opened"),
        ("a <private>word</private> word</private> b", "[private] b"),
        ('a < private reason="word" >word</ private > b', "a [private] b"),
        ('<private a="<b>">word</private>', "[private]"),
        ("<private a='>'>word</private> b", "[private] b"),
        ('<private a="</private>">word</private> b', "[private] b"),
        ("<private don't>word", "[private]"),
        ("<private/>word", "[private]"),
        ("<private-key>stays</private-key>", "<private-key>stays</private-key>"),
        ("if (a <private && b) stays", "if (a <private && b) stays"),
    ],
)
def test_a_private_stretch_gives_way_to_a_word_that_says_so(written: str, kept: str) -> None:
    assert without_private(written) == kept


MARKS = st.sampled_from(
    ["<private>", "</private>", "<PRIVATE a='>'>", "</ Private >", "<private\n>"]
)
OUTSIDE = st.sampled_from(["", "a ", "b < c ", "<b>", "ü\n"])


@st.composite
def hiding(draw: st.DrawFn) -> str:
    """A text with the secret in a private stretch, among nested and stray marks."""
    before = "".join(draw(st.lists(st.one_of(MARKS, OUTSIDE), max_size=4)))
    opening = draw(st.sampled_from(["<private>", "<PRIVATE>", '<private a="<b>">', "< private >"]))
    nested = draw(st.sampled_from(["", "<private>x</private>", "<Private>", "<b>"]))
    closing = draw(st.sampled_from(["</private>", "</PRIVATE >", "< / private>"]))
    after = "".join(draw(st.lists(OUTSIDE, max_size=3)))
    inner = f"{nested}{SECRET}" if nested.endswith("</private>") else f"{SECRET}{nested}"
    return f"t {before}{opening}{inner}{closing}{after}"


@st.composite
def split(draw: st.DrawFn) -> tuple[str, str]:
    """Return two texts: a private stretch begins in the first and ends in the second."""
    opening = draw(st.sampled_from(["<private>", "<PRIVATE a='1'>"]))
    closing = draw(st.sampled_from(["</private>", "</Private >"]))
    return f"x {opening} {SECRET}", f"{SECRET} {closing} y"


def held(folder: Path) -> bytes:
    """Return all bytes of the database, of its journal and of the journal's index."""
    files = list(folder.glob("memory.db*"))
    assert len(files) == 3, "the file, its journal and the journal's index"
    return b"".join(file.read_bytes() for file in files)


def record(line: dict[str, Any]) -> bytes:
    """Return a value as a line of an export."""
    return json.dumps(line).encode()


def revision(words: str) -> dict[str, Any]:
    """Return an earlier revision with these words in every field."""
    kept = Revision(1, words, 0.5, 1.0, words, words, (words,), words, words)
    return asdict(kept)


def line(number: int, words: str, **more: Any) -> dict[str, Any]:
    """Return an observation with these words in every field."""
    texts = dict.fromkeys(
        ("kind", "project", "scope", "session", "tool", "topic_key", "title", "content"), words
    )
    numbers = {"updated": 2.0, "created": 1.0, "importance": 0.5, "accesses": 0, "duplicates": 0}
    none = {"accessed": None, "deleted": None}
    texts["topic_key"] = f"imported {number}"
    return {"id": number, "revision": 2, "tags": [words], **texts, **numbers, **none, **more}


@given(hiding(), split())
def test_nothing_private_is_in_the_files_whatever_field_it_came_in(
    hidden: str, halves: tuple[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        database = open_database(folder / "memory.db")
        store = MemoryStore(database)
        every = (hidden, hidden, hidden, hidden, hidden, hidden, (hidden,), 0.5, hidden, hidden)
        store.save(Draft(*every))
        store.save(Draft(*halves, topic_key="k", tags=halves))
        store.save(Draft(f"again {hidden}", f"again {hidden}", topic_key="k"))
        given_lines = [record(line(1, hidden, revisions=[revision(hidden)]))]
        given_lines += [record(line(3, f"{hidden} 3", topic_key=f"3 {hidden}", project="p"))]
        given_lines += [record(line(2, halves[0], content=halves[1], tags=[*halves]))]
        imported(store, records(given_lines))
        assert SECRET.encode() not in held(folder)
        database.close()
        assert not any(SECRET.encode() in file.read_bytes() for file in folder.iterdir())


@given(hiding())
def test_nothing_private_in_a_request_is_kept_or_sent(hidden: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        client = Client(Path(made))
        before = client.call("turn/preview", model=client.model, system=hidden, user_message=hidden)
        client.system_text = hidden
        begun = client.begin([text(hidden), text("Go on.")])
        client.call("session/rename", title=hidden)
        sent = json.dumps([before, begun, client.messages])
        files = [file for file in Path(made).rglob("*") if file.is_file()]
        assert any(file.name.endswith("-wal") for file in files)
        client_held = b"".join(file.read_bytes() for file in files)
        client.close()
    assert SECRET not in sent
    assert SECRET.encode() not in client_held


# Over the wire


def files_with_the_secret(folder: Path) -> list[str]:
    """Return the files of the sidecar's home that contain the secret."""
    return [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and SECRET.encode() in file.read_bytes()
    ]


def test_a_request_goes_out_as_it_is_kept_and_the_person_is_told(
    sidecar: Connection, session: str, home: Path
) -> None:
    said = f"hello <private>{SECRET}</private>"
    asked = {"session_id": session, "model": "m", "user_message": said}
    seen = sidecar.request("turn/preview", **asked)
    begun = sidecar.request("turn/begin", **asked)
    [message] = begun["append"]["messages"]
    assert message["content"] == [{"type": "text", "text": "hello [private]"}]
    assert any("was not sent" in note for note in begun["notes"])
    assert any("was not sent" in note for note in seen["notes"])
    for method in ("session/messages", "session/transcript", "session/turns"):
        assert SECRET not in str(sidecar.request(method, session_id=session))
    assert files_with_the_secret(home) == []


def test_a_request_without_marks_has_no_note(sidecar: Connection, session: str) -> None:
    begun = sidecar.request("turn/begin", session_id=session, model="m", user_message="a < b")
    assert begun["notes"] == []


def test_what_a_person_answers_and_a_title_are_kept_without_it(
    sidecar: Connection, session: str, project: Path, home: Path
) -> None:
    said = f"It is <private>{SECRET}</private>."
    sidecar.request("session/rename", session_id=session, title=f"Fix {said}")
    envelope = sidecar.request(
        "tools/record",
        session_id=session,
        name="ask_user",
        arguments={"question": "Which?"},
        tool_use_id="u1",
        text=said,
        message=said,
        said=True,
    )
    assert envelope["text"].startswith("It is [private].")
    sidecar.request(
        "tools/call",
        session_id=session,
        name="mem_search",
        arguments={"query": said},
        tool_use_id="u2",
    )
    other = sidecar.request("session/open", root=str(project))["session_id"]
    context = sidecar.request(
        "tools/call", session_id=other, name="mem_context", arguments={}, tool_use_id="u3"
    )
    assert "Fix It is [private]." in context["text"]
    assert files_with_the_secret(home) == []


def test_a_value_that_holds_nothing_private_stays_as_it_is() -> None:
    value = {"a": ["x", 1, None, {"b": "</b>"}]}
    assert public(value) == value
