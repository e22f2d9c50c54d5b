"""A tool that does what no tool should."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from efrit_budget.tools.base import Arguments, Hint, Outcome, Policy, ToolContext

SECRET = "the secret word is xyzzy"


class MisbehaveArguments(Arguments):
    """The arguments of `misbehave`."""

    how: str


class Panic(BaseException):
    """An error that is no `Exception`, as a native extension raises when it panics."""


def _print() -> Outcome:
    print("stray words on stdout")
    sys.stdout.write("more of them\n")
    os.write(1, b"and from below\n")
    subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)
    return Outcome("printed")


def _raise(error: BaseException) -> Outcome:
    raise error


def _recurse() -> Outcome:
    return _recurse()


def _stubborn() -> Outcome:
    end = time.monotonic() + 600
    while time.monotonic() < end:
        time.sleep(0.05)
    return Outcome("late")


def _crash_a_thread() -> Outcome:
    thread = threading.Thread(target=lambda: _raise(RuntimeError(SECRET)))
    thread.start()
    thread.join()
    return Outcome("went on")


HOW: dict[str, Callable[[], Any]] = {
    "print": _print,
    "raise": lambda: _raise(RuntimeError(SECRET)),
    "os error": lambda: _raise(OSError(5, SECRET)),
    "exit": lambda: _raise(SystemExit(SECRET)),
    "panic": lambda: _raise(Panic(SECRET)),
    "interrupt": lambda: _raise(KeyboardInterrupt(SECRET)),
    "recurse": _recurse,
    "nan": lambda: Outcome("not a number", {"number": math.nan}),
    "set": lambda: Outcome("a set", {"set": {1, 2}}),
    "surrogate": lambda: Outcome("a name: \udce9", {"name": "\udce9"}),
    "nothing": lambda: None,
    "stubborn": _stubborn,
    "thread": _crash_a_thread,
}


class Misbehave:
    """Prints, raises, returns something invalid, or does not stop."""

    name: ClassVar[str] = "misbehave"
    description: ClassVar[str] = "Do wrong."
    arguments: ClassVar[type[Arguments]] = MisbehaveArguments
    policy: ClassVar[Policy] = Policy.ALLOW
    has_effects: ClassVar[bool] = False
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: MisbehaveArguments, context: ToolContext) -> Outcome:
        """Misbehave in the requested way."""
        outcome: Outcome = HOW[arguments.how]()
        return outcome

    def compress(self, arguments: MisbehaveArguments, outcome: Outcome) -> str:
        """Return the kind of misbehaviour."""
        return arguments.how


TOOL = Misbehave()
