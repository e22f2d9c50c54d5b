"""Runs a shell command once the person has agreed to it."""

from __future__ import annotations

import os
import re
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.environment import unattended
from efrit_budget.project.paths import OutsideError, shown_name
from efrit_budget.project.processes import SHELL, Finished, follow
from efrit_budget.project.project import Located
from efrit_budget.project.terminal import Kept
from efrit_budget.results.body import Body
from efrit_budget.tools.base import (
    Arguments,
    Hint,
    Outcome,
    Policy,
    Status,
    ToolContext,
    failure,
    question,
)
from efrit_budget.tools.ends import last_lines
from efrit_budget.tools.sizes import counted, sized

DEFAULT_SECONDS, MOST_SECONDS = 120, 3600
REPORT_SECONDS = 1.0
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800"
    "\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""What could make a command look like another one; the Emacs client has the same list."""
EDGE = 150


class RunCommandArguments(Arguments):
    """The arguments of `run_command`."""

    command: Annotated[str, Field(min_length=1)]
    timeout: Annotated[int, Field(ge=1, le=MOST_SECONDS, description="Seconds")] = DEFAULT_SECONDS
    cwd: Annotated[str | None, Field(min_length=1)] = None


class RunCommand:
    """Asks always; what a command leaves running is ended with it."""

    name: ClassVar[str] = "run_command"
    description: ClassVar[str] = (
        "Run a /bin/sh command; the person is asked first. No terminal, no input, no API keys; "
        "background processes end with it. Long output shows its beginning and end."
    )
    arguments: ClassVar[type[Arguments]] = RunCommandArguments
    policy: ClassVar[Policy] = Policy.ASK
    has_effects: ClassVar[bool] = True
    hint: ClassVar[Hint | None] = None

    def run(self, arguments: RunCommandArguments, context: ToolContext) -> Outcome:
        """Ask, then run it to its end or to its time limit."""
        try:
            os.fsencode(arguments.command)
            folder = _folder(arguments.cwd or ".", context)
        except (NoFolderError, OutsideError) as error:
            return failure(str(error))
        except UnicodeEncodeError:
            return failure("the command holds half a character; write it anew")
        if "\0" in arguments.command:
            return failure("a command cannot hold a NUL byte; write it as \\0 for printf")
        if not context.confirmed:
            return question(f"Run in {shown_name(str(folder.path))}:\n{visible(arguments.command)}")
        try:
            return _ran(arguments, folder.path, context).outcome(context)
        except OSError as error:
            return failure(f"{SHELL} was not started: {error.strerror or error}")

    def compress(self, arguments: RunCommandArguments, outcome: Outcome) -> str:
        """The command, how it ended, and the edges of what it wrote."""
        body = outcome.whole
        ended, _, output = body.text.partition("\n")
        lines = counted(body.count(0, len(body.text)) - 1, "line")
        command = " ".join(arguments.command.split())[:EDGE]
        said = f"Ran '{command}': {ended}, {lines}."
        if len(output) <= 2 * EDGE:
            return f"{said}\n{output}"[:500]
        return f"{said}\n{output[: EDGE - 20]} … {output[-EDGE:]}"[:500]


class NoFolderError(Exception):
    """There is no folder to run a command in."""


def visible(command: str) -> str:
    """A command as the person is asked about it: no sign in it hides another."""
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", command)


def _folder(path: str, context: ToolContext) -> Located:
    located = context.project.locate(path)
    try:
        mode = context.project.stat(located).st_mode
    except OSError as error:
        raise NoFolderError(f"cwd {located.shown}: {error.strerror or error}") from error
    if not stat.S_ISDIR(mode):
        raise NoFolderError(f"cwd {located.shown} is no folder; give the one it is in")
    return located


def _ran(arguments: RunCommandArguments, folder: Path, context: ToolContext) -> _Ran:
    """Run the command, and tell now and then what it has written."""
    kept, begun = Kept(), time.monotonic()
    context.progress.shows(kept.newest)
    next_report = begun + REPORT_SECONDS

    def take(data: bytes) -> None:
        nonlocal next_report
        kept.add(data)
        if time.monotonic() >= next_report:
            next_report = time.monotonic() + REPORT_SECONDS
            context.progress(f"{sized(kept.size)} of output", kept.size)

    finished = follow(
        arguments.command,
        take,
        cwd=folder,
        cancellation=context.cancellation,
        timeout=arguments.timeout,
        env=unattended(os.environ),
    )
    seconds = time.monotonic() - begun
    return _Ran(arguments, finished, kept, seconds, context.cancellation)


@dataclass(frozen=True)
class _Ran:
    """A command that has ended, or was ended."""

    arguments: RunCommandArguments
    finished: Finished
    kept: Kept
    seconds: float
    cancellation: Cancellation

    def outcome(self, context: ToolContext) -> Outcome:
        """How it ended, and what it wrote: its beginning, and its end beside it if it is long."""
        output = self.kept.text()
        body = Body(f"{self._ended(has_output=output != '')}\n{output}", data=self._facts())
        notes = (*last_lines(body, self._notes(), context), *self._notes())
        status = Status.SUCCESS if (message := self._message()) is None else Status.ERROR
        return Outcome(body=body, notes=notes, status=status, message=message)

    def _message(self) -> str | None:
        if self.cancellation.cancelled:
            return self._ended(has_output=True)
        if self.finished.timed_out:
            return f"{self._ended(has_output=True)}; raise timeout"
        return None

    def _ended(self, *, has_output: bool) -> str:
        silent = "" if has_output else ", no output"
        if self.cancellation.by_person:
            return f"stopped by the person after {self.seconds:,.1f} s{silent}"
        if self.cancellation.cancelled:
            return f"stopped before its end, after {self.seconds:,.1f} s{silent}"
        if self.finished.timed_out:
            seconds = counted(self.arguments.timeout, "second")
            return f"ended after {seconds}, the time limit{silent}"
        code = self.finished.code
        return (f"exit {code}" if code >= 0 else f"ended by {_signal_name(-code)}") + silent

    def _facts(self) -> dict[str, object]:
        code = self.finished.code
        return {
            "exit_code": code if code >= 0 else None,
            "signal": _signal_name(-code) if code < 0 else None,
            "timed_out": self.finished.timed_out,
            "seconds": round(self.seconds, 3),
            "bytes": self.kept.size,
            "dropped_bytes": self.kept.dropped,
            "left_running": self._left_running,
            "interrupted": self.cancellation.cancelled,
        }

    @property
    def _left_running(self) -> bool:
        return self.finished.left and not self.cancellation.cancelled

    def _notes(self) -> tuple[str, ...]:
        took = f"Took {self.seconds:,.1f} s."
        left = " What it left running was ended." if self._left_running else ""
        return (took + left,)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


TOOL = RunCommand()
