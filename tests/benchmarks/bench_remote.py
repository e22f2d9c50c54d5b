"""A project behind ssh with a round trip of 100 ms: round trips, and how long Emacs is blocked."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks.played import ROOT, Play, play
from tests.benchmarks.table import Row
from tests.demo.running import endpoint
from tests.emacs.over_ssh import HOST, machine
from tests.emacs.terminal import settings

SCRIPT = ROOT / "tests" / "benchmarks" / "elisp" / "bench-remote.el"
DELAY = 0.05
"""The seconds that everything takes to the other machine, and as many back."""
LINE = "This is line {} of a text of the project, with some words in it.\n"
TEXT = "".join(LINE.format(number) for number in range(200))
LONG = "".join(LINE.format(number) for number in range(2_000))
Measured = dict[str, Any]


def run() -> Iterator[Row]:
    """Yield every row of the table."""
    session = [
        read("a.txt"),
        read("b.txt"),
        edit("a.txt", 20),
        ("search_content", {"pattern": "line 77 "}),
        ("create_file", {"path": "new/c.txt", "content": TEXT}),
        read("c/d.txt"),
        edit("b.txt", 30),
        ("run_command", {"command": "cat b.txt | wc -l"}),
        read("b.txt"),
    ]
    rows = measure(session, [])
    whole = named(rows, "session")["seconds"]
    yield _seconds("ten turns: reads, two edits, one new file, one command", whole, 12, "53.7 s")
    yield from _start(rows)
    local = named(measure(session, [], delay=0.0), "session")["seconds"]
    yield Row("the same without the delay", f"{local:.1f} s")
    actions = [
        edit("a.txt", 20),
        edit("a.txt", 40),
        edit("long.txt", 900),
        ("create_file", {"path": "new/c.txt", "content": TEXT}),
        ("rename_file", {"path": "new/c.txt", "to": "new/e.txt"}),
        ("delete_file", {"path": "new/e.txt"}),
        ("undo_edit", {}),
        ("run_command", {"command": "sed -i s/77/seventy-seven/ c/d.txt b.txt"}),
    ]
    yield from _actions("no buffer visits it", measure(actions, []))
    visited = ["a.txt", "b.txt", "c/d.txt", "long.txt"]
    yield from _actions("buffers visit four files", measure(actions, visited))


def read(path: str) -> tuple[str, dict[str, Any]]:
    """Return a use of the tool that reads a file."""
    return "read_file", {"path": path}


def edit(path: str, line: int) -> tuple[str, dict[str, Any]]:
    """Return a use of the tool that edits a file, of one line."""
    old = LINE.format(line)
    return "edit_file", {"path": path, "old_text": old, "new_text": f"New: {old}"}


def measure(
    uses: list[tuple[str, dict[str, Any]]], visited: list[str], delay: float = DELAY
) -> list[Measured]:
    """Play a session with these uses of tools over ssh; return what Emacs measured."""
    with ExitStack() as stack:
        there = stack.enter_context(machine(delay=delay))
        root = there.folder / "project"
        for name, text in {"a.txt": TEXT, "b.txt": TEXT, "c/d.txt": TEXT, "long.txt": LONG}.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        subprocess.run(["git", "init", "--quiet", root], check=True)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = stack.enter_context(endpoint(_scenario(uses), folder))
        output = folder / "measured.json"
        person = there.folder / "person"
        person.mkdir()
        play(
            Play(SCRIPT, "efrit-bench-remote-run", folder, output),
            settings(model.server.url),
            PATH=f"{there.client}:{os.environ['PATH']}",
            HOME=str(person),
            TMPDIR=str(there.folder),
            EFRIT_BENCH_ROOT=f"{HOST}{root}/",
            EFRIT_BENCH_VISITED=" ".join(visited),
        )
        measured = json.loads(output.read_text(encoding="utf-8"))
        if measured["problem"]:
            raise RuntimeError(f"the session: {measured['problem']}")
        rows: list[Measured] = measured["rows"]
        for row in rows:
            if row.get("status") == "error":
                raise RuntimeError(f"a tool failed: {row}")
        return rows


def named(rows: list[Measured], what: str) -> Measured:
    """Return the first row of this name."""
    return next(row for row in rows if row["what"] == what)


def _scenario(uses: list[tuple[str, dict[str, Any]]]) -> str:
    replies = [
        f"[[reply]]\n[[reply.tool]]\nname = {json.dumps(name)}\n"
        f"input_json = {json.dumps(json.dumps(given))}\n"
        for name, given in uses
    ]
    return "\n".join([*replies, '[[reply]]\ntext = "Done."\n'])


def _start(rows: list[Measured]) -> Iterator[Row]:
    connection = named(rows, "TRAMP's connection")
    yield Row("TRAMP's connection", f"{connection['seconds']:.1f} s")
    yield _action("finding the project of a folder", named(rows, "project"), None)
    sidecar = named(rows, "sidecar")
    connecting = f"of them TRAMP's second connection: {sidecar['connecting']:.1f} s"
    yield _action("start of the sidecar", sidecar, None, connecting)
    yield _action("beginning of a session", named(rows, "session/open"), None)
    yield _action("sending of the first message", named(rows, "message"), None)


def _actions(where: str, rows: list[Measured]) -> Iterator[Row]:
    for row in rows:
        if row.get("status"):
            is_edit = row["what"] == "edit_file"
            yield _action(f"{row['what']}, {where}", row, 1.0 if is_edit else None)


def _action(what: str, row: Measured, bar: float | None, more: str = "") -> Row:
    blocked = 1000 * row["blocked"]
    holds = blocked <= 300 and (bar is None or row["seconds"] <= bar)
    limit = "" if bar is None else f"≤ {bar:.0f} s, "
    return Row(
        what,
        f"{row['seconds']:.2f} s, blocked {blocked:.0f} ms",
        more or f"{row['commands']} commands of TRAMP's, {row['requests']} messages",
        bar=f"{limit}blocked ≤ 300 ms",
        holds=holds,
    )


def _seconds(what: str, found: float, bar: float, reference: str) -> Row:
    return Row(what, f"{found:.1f} s", f"was {reference}", bar=f"≤ {bar:.0f} s", holds=found <= bar)
