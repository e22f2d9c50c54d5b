"""Count what one request passes: functions, files and changes of room.

`python -m tests.benchmarks.passed [REQUEST]` prints the figures of each request, or lists the
functions that one passes. A change of room is a pair of a caller and a function called from it in
another room, counted once: what a reader has to follow, however many matches a search has.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import efrit_budget
from efrit_budget.app import open_application
from efrit_budget.settings.load import load
from efrit_budget.wire.call import Call
from efrit_budget.wire.dispatch import Dispatcher
from efrit_budget.wire.request import request_of

PACKAGE = Path(efrit_budget.__file__).parent
MODEL, OTHER_MODEL = "claude-opus-4-5", "claude-sonnet-4-5"
USAGE = {"input_tokens": 5_000, "output_tokens": 50}
SEARCH = {"pattern": "needle"}

Function = tuple[str, str]
"""A file of the package and a qualified name."""


@dataclass
class Passed:
    """The functions of the package that a request passed, in the order of their first calls."""

    functions: dict[Function, None] = field(default_factory=dict)
    pairs: set[tuple[Function, Function]] = field(default_factory=set)

    @property
    def files(self) -> int:
        """Return the number of files."""
        return len({file for file, _ in self.functions})

    @property
    def room_changes(self) -> int:
        """Return the number of pairs of caller and function in different rooms."""
        return sum(_room(caller) != _room(called) for caller, called in self.pairs)

    def notice(self, frame: FrameType, event: str, _: object) -> None:
        """Take a call from the profiler."""
        called = _function(frame) if event == "call" else None
        if called is not None:
            self.functions.setdefault(called)
            caller = _caller(frame)
            if caller is not None:
                self.pairs.add((caller, called))


def _function(frame: FrameType) -> Function | None:
    """Return the function of a frame, None for others' and for nameless ones."""
    code = frame.f_code
    name = code.co_qualname
    path = Path(code.co_filename)
    if PACKAGE not in path.parents or name.rpartition(".")[2].startswith("<"):
        return None
    return path.relative_to(PACKAGE).as_posix(), name


def _caller(frame: FrameType) -> Function | None:
    """Return the nearest function of the package that a frame was called from."""
    outer = frame.f_back
    while outer is not None:
        found = _function(outer)
        if found is not None:
            return found
        outer = outer.f_back
    return None


def _room(function: Function) -> str:
    return function[0].partition("/")[0]


class Session:
    """A session in an application of this process."""

    def __init__(self, dispatcher: Dispatcher, root: Path) -> None:
        self._dispatcher = dispatcher
        self._requests = 0
        self._id: str = self.call("session/open", root=str(root))["session_id"]

    def call(self, method: str, **params: object) -> Any:
        """Return the result of a request."""
        self._requests += 1
        params = params if method == "session/open" else {"session_id": self._id, **params}
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        request = request_of(message)
        assert not isinstance(request, dict), request
        reply = self._dispatcher.reply(request, Call())
        assert reply is not None
        assert "result" in reply, reply
        return reply["result"]

    def begin(self, model: str = MODEL, system: str = "be brief", **more: object) -> None:
        """Begin a turn."""
        self.call("turn/begin", model=model, system=system, **more)

    def end(self, *blocks: dict[str, object]) -> None:
        """End a turn with a reply."""
        reason = "tool_use" if blocks and blocks[0]["type"] == "tool_use" else "end_turn"
        self.call("turn/end", model=MODEL, usage=USAGE, content=list(blocks), stop_reason=reason)

    def search(self, tool_use_id: str) -> None:
        """Call the search, as Emacs does."""
        self.call(
            "tools/call",
            name="search_content",
            arguments=SEARCH,
            tool_use_id=tool_use_id,
            include_data=False,
        )


@contextmanager
def session() -> Iterator[Session]:
    """Open a session in a small repository, with a database of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        root = folder / "project"
        root.mkdir()
        for number in range(40):
            lines = "import os\n" + "needle = 1\n" * (number % 5) + "x = 2\n" * 20
            (root / f"f{number}.py").write_text(lines, encoding="utf-8")
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        overrides = {"storage.database": folder / "data" / "sessions.sqlite3"}
        application = open_application(load(project_root=root, overrides=overrides))
        stack.callback(application.close)
        yield Session(Dispatcher(application.methods), root)


def passed_by(request: Callable[[], None]) -> Passed:
    """Return what a request passes in this thread and those it starts."""
    found = Passed()
    threading.setprofile(found.notice)
    sys.setprofile(found.notice)
    try:
        request()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def measure() -> dict[str, Passed]:
    """Return what each request passes, all of them warm."""
    with session() as warm:
        for use in ("a", "b"):
            warm.begin(user_message="look")
            warm.end({"type": "tool_use", "id": use, "name": "search_content", "input": SEARCH})
            warm.search(use)
        warm.begin(user_message="look")
        warm.end({"type": "tool_use", "id": "c", "name": "search_content", "input": SEARCH})
        return {
            "search_content": passed_by(lambda: warm.search("c")),
            "turn/begin": passed_by(warm.begin),
            "turn/end": passed_by(lambda: warm.end({"type": "text", "text": "done"})),
            "turn/begin, rewriting": passed_by(
                lambda: warm.begin(OTHER_MODEL, "be brief now", user_message="again")
            ),
        }


def main(wanted: list[str]) -> None:
    """Print the figures of every request, or the functions of those wanted."""
    for name, found in measure().items():
        print(
            f"{name}: {len(found.functions)} functions in {found.files} files, "
            f"{found.room_changes} changes of room"
        )
        if name in wanted:
            print("\n".join(f"  {file}  {function}" for file, function in found.functions))


if __name__ == "__main__":
    main(sys.argv[1:])
