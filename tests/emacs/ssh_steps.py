"""Random sessions of a model that edits files and runs commands, and their expected outcome."""

from __future__ import annotations

import json
import random
import shlex
from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, str]
Given = dict[str, Any]
NAMES = ("a.txt", "b.txt", "new/c.txt", "new/deep/d.txt")
LONG, SHORT = 1057, 3
"""The numbers of lines of a long and of a short file."""


@dataclass(frozen=True)
class Use:
    """A use of a tool: whether it succeeds, and the files after it."""

    tool: str
    given: Given
    success: bool
    tree: Tree


@dataclass(frozen=True)
class Change:
    """A change by a tool: its files before and after; None means no file."""

    before: dict[str, str | None]
    after: dict[str, str | None]


@dataclass
class Session:
    """The uses so far, and the files after them."""

    chance: random.Random
    tree: Tree = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    _changes: list[Change] = field(default_factory=list)
    _unread: set[str] = field(default_factory=set)
    """The files changed by commands since the model last read them."""
    _number: int = 0

    def step(self) -> None:
        """Add a step that can be done now: one use of a tool, or two."""
        steps = [self._undo, self._command, self._command]
        if self.tree:
            steps += [self._edit, self._edit, self._delete]
        if len(self.tree) < len(NAMES):
            steps += [self.create]
        if 0 < len(self.tree) < len(NAMES):
            steps += [self._rename]
        self.chance.choice(steps)()

    def change(self) -> None:
        """Add a step that changes a file by a tool, or reads one."""
        steps = [self.create] if len(self.tree) < len(NAMES) else []
        if self.tree:
            steps += [self._edit, self._edit, self._delete, self._read]
        if 0 < len(self.tree) < len(NAMES):
            steps += [self._rename]
        self.chance.choice(steps)()

    def scenario(self) -> str:
        """Return the scenario of a model that makes all these uses, one in each reply."""
        replies = [
            f"[[reply]]\n[[reply.tool]]\nname = {json.dumps(use.tool)}\n"
            f"input_json = {json.dumps(json.dumps(use.given))}\n"
            for use in self.uses
        ]
        return "\n".join([*replies, '[[reply]]\ntext = "Done."\n'])

    def text(self) -> str:
        """Return the text of a new file, short or long, in lines that no other file has."""
        self._number += 1
        lines = self.chance.choice((SHORT, LONG))
        return "".join(f"text {self._number}, line {line}.\n" for line in range(lines))

    def _there(self) -> str:
        return self.chance.choice(sorted(self.tree))

    def _known(self) -> str:
        """Return an existing file, and have it read again if a command changed it."""
        path = self._there()
        if path in self._unread:
            self._unread.remove(path)
            self._use("read_file", path=path)
        return path

    def _not_there(self) -> str:
        return self.chance.choice(sorted(set(NAMES) - set(self.tree)))

    def _use(self, tool: str, success: bool = True, **given: Any) -> None:
        self.uses.append(Use(tool, given, success, dict(self.tree)))

    def _change(self, tool: str, after: dict[str, str | None], **given: Any) -> None:
        self._changes.append(Change({name: self.tree.get(name) for name in after}, after))
        self._set(after)
        self._unread -= set(after)
        self._use(tool, **given)

    def _set(self, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            self.tree.pop(name, None)
            if text is not None:
                self.tree[name] = text

    def _read(self) -> None:
        self._use("read_file", path=self._there())

    def _edit(self) -> None:
        path = self._known()
        old = self.chance.choice(self.tree[path].splitlines(keepends=True))
        new = self.text()
        after = self.tree[path].replace(old, new)
        self._change("edit_file", {path: after}, path=path, old_text=old, new_text=new)

    def create(self) -> None:
        path, text = self._not_there(), self.text()
        self._change("create_file", {path: text}, path=path, content=text)

    def _delete(self) -> None:
        path = self._known()
        self._change("delete_file", {path: None}, path=path)

    def _rename(self) -> None:
        path, to = self._there(), self._not_there()
        after = {path: None, to: self.tree[path]}
        self._change("rename_file", after, path=path, to=to)

    def _undo(self) -> None:
        """Undo the last change still in force; it fails if the files were changed since."""
        there = [change for change in self._changes if not self._stand(change.before)]
        success = bool(there) and self._stand(there[-1].after)
        if success:
            self._changes.remove(there[-1])
            self._set(there[-1].before)
            self._unread -= set(there[-1].before)
        self._use("undo_edit", success)

    def _stand(self, files: dict[str, str | None]) -> bool:
        return all(self.tree.get(name) == text for name, text in files.items())

    def _command(self) -> None:
        """Run a command that changes a file or none, and prints much or little."""
        lines = self.chance.choice((10, 4500))
        command = f"seq {lines}"
        kind = self.chance.choice(("nothing", "remove", "write", "move"))
        path = self.chance.choice(NAMES)
        quoted = shlex.quote(path)
        if kind == "write":
            self._number += 1
            text = f"written by command {self._number}.\n"
            command += f" && mkdir -p new/deep && printf %s {shlex.quote(text)} > {quoted}"
            self._changed_by_command({path: text})
        elif kind == "remove" and path in self.tree:
            command += f" && rm {quoted}"
            self._changed_by_command({path: None})
        elif kind == "move" and path in self.tree and len(self.tree) < len(NAMES):
            to = self._not_there()
            command += f" && mkdir -p new/deep && mv {quoted} {shlex.quote(to)}"
            self._changed_by_command({path: None, to: self.tree[path]})
        self._use("run_command", command=command)

    def _changed_by_command(self, files: dict[str, str | None]) -> None:
        self._set(files)
        self._unread |= set(files)


def session(chance: random.Random, steps: int, *, commands: bool = True) -> Session:
    """Return a session of this many steps, the first of which creates a file.

    Without `commands`, each step is one that can be repeated if nobody knows whether it was done.
    """
    made = Session(chance)
    made.create()
    for _ in range(steps - 1):
        if commands:
            made.step()
        else:
            made.change()
    return made
