"""A stand-in for Emacs: it stores files before a change, changes them and reports the outcome."""

from __future__ import annotations

import itertools
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError

REFUSED, FAILED, INVALID, CONFLICT, STORAGE = -32007, -32008, -32602, -32005, -32003
Tree = dict[str, tuple[int, bytes | str | None]]
_uses = itertools.count(1)


class Hands:
    """One session of a sidecar, and the files it changes."""

    def __init__(self, sidecar: Connection, project: Path, session: str) -> None:
        self.sidecar = sidecar
        self.project = project
        self.session = session

    def __call__(self, method: str, /, **params: Any) -> Any:
        """Call a method of the family."""
        return self.sidecar.request(f"changes/{method}", session_id=self.session, **params)

    def error(self, method: str, /, **params: Any) -> RpcError:
        """Return the error of a call that must fail."""
        with pytest.raises(RpcError) as caught:
            self(method, **params)
        return caught.value

    def use(self) -> str:
        """Return a new tool_use_id."""
        return f"toolu_{next(_uses)}"

    def begin(self, *files: dict[str, Any], use: str | None = None) -> list[dict[str, Any]]:
        """Have the sidecar store the files before they are changed."""
        begun = self("begin", tool_use_id=use or self.use(), tool="a_tool", files=list(files))
        changes: list[dict[str, Any]] = begun["changes"]
        return changes

    def changed(self, change: Callable[[], object], *files: dict[str, Any]) -> list[int]:
        """Change files as Emacs does; the numbers of the changes."""
        use = self.use()
        self.begin(*files, use=use)
        change()
        ended = self("end", tool_use_id=use, outcome="done")["changes"]
        assert {one["state"] for one in ended} == {"done"}
        return [one["number"] for one in ended]

    def edit(self, path: str, text: str | bytes) -> int:
        """Write a file anew."""
        data = text.encode() if isinstance(text, str) else text
        file = self.project / path
        return self.changed(lambda: file.write_bytes(data), {"path": path, "kind": "edit"})[0]

    def create(self, path: str, text: str | bytes) -> int:
        """Make a file, and the folders it needs."""
        data = text.encode() if isinstance(text, str) else text
        file = self.project / path

        def make() -> None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

        return self.changed(make, {"path": path, "kind": "create"})[0]

    def delete(self, path: str) -> int:
        """Remove a file."""
        file = self.project / path
        return self.changed(file.unlink, {"path": path, "kind": "delete"})[0]

    def rename(self, path: str, to: str) -> int:
        """Rename a file."""
        file, target = self.project / path, self.project / to

        def move() -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)

        return self.changed(move, {"path": path, "kind": "rename", "to": to})[0]

    def now(self, number: int) -> str:
        """Return the present state of a change's file."""
        listed = {one["number"]: one["now"] for one in self("list")["changes"]}
        return str(listed[number])


def tree(folder: Path) -> Tree:
    """Return the kind, permissions and contents, or link target, of everything in a folder."""
    return dict(_entries(folder, folder))


def _entries(folder: Path, root: Path) -> Iterator[tuple[str, tuple[int, bytes | str | None]]]:
    for entry in sorted(folder.iterdir()):
        mode = entry.lstat().st_mode
        held: bytes | str | None = None
        if stat.S_ISLNK(mode):
            held = str(entry.readlink())
        elif stat.S_ISREG(mode):
            held = entry.read_bytes()
        yield str(entry.relative_to(root)), (mode, held)
        if stat.S_ISDIR(mode):
            yield from _entries(entry, root)
