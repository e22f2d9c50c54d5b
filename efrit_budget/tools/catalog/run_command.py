"""The tool `run_command`: runs a shell command after the person agreed."""

from __future__ import annotations

import os
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from efrit_budget.cancellation import Cancellation
from efrit_budget.characters import all_seen
from efrit_budget.project.paths import OutsideError, shown_name
from efrit_budget.project.processes.environment import unattended
from efrit_budget.project.processes.run import SHELL, Finished, follow
from efrit_budget.project.project import Located
from efrit_budget.project.text.terminal import Kept
from efrit_budget.results.body import Body
from efrit_budget.results.footer import LONGEST_FOOTER, LONGEST_NAVIGATION
from efrit_budget.results.marks import MARK, own, quote, unquote
from efrit_budget.tools.base import (
    Arguments,
    Outcome,
    Policy,
    Status,
    Tool,
    ToolContext,
    failure,
    question,
)
from efrit_budget.tools.sizes import counted, sized

DEFAULT_SECONDS, MOST_SECONDS = 120, 3600
REPORT_SECONDS = 1.0
EDGE = 150
LEAST_ROOM = 30
"""With room for fewer tokens, the last lines are not shown beside the first page."""
READ_FOR_A_TOKEN = 8
SHRINK = 0.9


class RunCommandArguments(Arguments):
    """The arguments of `run_command`."""

    command: Annotated[str, Field(min_length=1)]
    timeout: Annotated[int, Field(ge=1, le=MOST_SECONDS, description="Seconds")] = DEFAULT_SECONDS
    cwd: Annotated[str | None, Field(min_length=1)] = None


class RunCommand(Tool):
    """Runs a command after asking; kills all processes that the command leaves running."""

    name = "run_command"
    description = (
        "Run a /bin/sh command; the person is asked first. No terminal, no input, no API keys; "
        "background processes end with it. Long output shows its beginning and end."
    )
    arguments = RunCommandArguments
    policy = Policy.ASK
    has_effects = True

    def run(self, arguments: RunCommandArguments, context: ToolContext) -> Outcome:
        """Ask the person, then run the command to its end or its time limit."""
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
            return question(
                f"Run in {shown_name(str(folder.path))}:\n{all_seen(arguments.command)}"
            )
        try:
            return _run(arguments, folder.path, context).outcome(context)
        except OSError as error:
            return failure(f"{SHELL} was not started: {error.strerror or error}")

    def compress(self, arguments: RunCommandArguments, outcome: Outcome) -> str:
        """Return the command, its exit, and the beginning and end of its output."""
        body = outcome.whole
        exit_text, _, output = body.text.removeprefix(f"{MARK} ").partition("\n")
        lines = counted(body.count(0, len(body.text)) - 1, "line")
        command = " ".join(arguments.command.split())[:EDGE]
        text = f"Ran '{command}': {exit_text}, {lines}."
        if len(output) <= 2 * EDGE:
            return f"{text}\n{output}"[:500]
        return f"{text}\n{output[: EDGE - 20]} … {output[-EDGE:]}"[:500]


class NoFolderError(Exception):
    """The folder to run the command in does not exist, or is no folder."""


def _folder(path: str, context: ToolContext) -> Located:
    located = context.project.locate(path)
    try:
        mode = context.project.stat(located).st_mode
    except OSError as error:
        raise NoFolderError(f"cwd {located.shown}: {error.strerror or error}") from error
    if not stat.S_ISDIR(mode):
        raise NoFolderError(f"cwd {located.shown} is not a folder; give the folder it is in")
    return located


def _run(arguments: RunCommandArguments, folder: Path, context: ToolContext) -> _Ran:
    """Run the command, and report the bytes of output while it runs."""
    output, start = Kept(), time.monotonic()
    context.progress.shows(output.newest)
    next_report = start + REPORT_SECONDS

    def take(data: bytes) -> None:
        nonlocal next_report
        output.add(data)
        if time.monotonic() >= next_report:
            next_report = time.monotonic() + REPORT_SECONDS
            context.progress(f"{sized(output.size)} of output", output.size)

    finished = follow(
        arguments.command,
        take,
        cwd=folder,
        cancellation=context.cancellation,
        timeout=arguments.timeout,
        env=unattended(os.environ),
        hides_others=context.settings.hide_processes,
    )
    seconds = time.monotonic() - start
    return _Ran(arguments, finished, output, seconds, context.cancellation)


@dataclass(frozen=True)
class _Ran:
    """A command that ended or was stopped, with its output."""

    arguments: RunCommandArguments
    finished: Finished
    kept: Kept
    seconds: float
    cancellation: Cancellation

    def outcome(self, context: ToolContext) -> Outcome:
        """Return the exit and the output; if it is long, with its end in a note."""
        begin, end = self.kept.parts()
        text = f"{own(self._describe_end(has_output=begin != ''))}\n{quote(begin)}"
        if self.kept.dropped:
            dropped = f"… {self.kept.dropped:,} bytes of output were not kept …"
            text += ("" if begin.endswith("\n") else "\n") + own(dropped, end)
        body = Body(text, data=self._facts())
        note = f"Took {self.seconds:,.1f} s."
        if self._left_running:
            note += " What it left running was ended."
        notes = (*_last_lines(body, note, context), note)
        status = Status.SUCCESS if (message := self._message()) is None else Status.ERROR
        gist = self._describe_gist()
        return Outcome(body=body, notes=notes, status=status, message=message, gist=gist)

    def _message(self) -> str | None:
        if self.cancellation.cancelled:
            return self._describe_end(has_output=True)
        if self.finished.timed_out:
            return f"{self._describe_end(has_output=True)}; raise timeout"
        return None

    def _describe_gist(self) -> str:
        """Return the end of the command for the person, without its output."""
        if self.cancellation.by_person:
            return f"you, after {self.seconds:,.1f} s"
        if self.cancellation.cancelled:
            return f"after {self.seconds:,.1f} s"
        return self._describe_end(has_output=True)

    def _describe_end(self, *, has_output: bool) -> str:
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


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# The last lines of the output, in a note to its first page


def _last_lines(body: Body, beside: str, context: ToolContext) -> tuple[str, ...]:
    """Return a note with the last lines of a body; none if all of it fits beside `beside`."""
    most = context.allowance * READ_FOR_A_TOKEN * 5
    rest = beside + LONGEST_FOOTER
    if len(body.text) <= most and context.cost(body.text + rest) <= context.allowance:
        return ()
    room = (context.allowance - context.cost(f"{LONGEST_NAVIGATION}\n{rest}")) // 2
    return _fit_lines(body, room, context) if room >= LEAST_ROOM else ()


def _fit_lines(body: Body, room: int, context: ToolContext) -> tuple[str, ...]:
    text = body.text.removesuffix("\n")
    total = body.whole_count
    size = room * READ_FOR_A_TOKEN
    while size > 0:
        excerpt, lines = _cut_end(text, size)
        heading = f"… the end, from line {total - lines + 1:,} on:"
        spent = context.cost(f"{own(heading)}\n{excerpt}\n")
        if spent <= room:
            return (f"{heading}\n{unquote(excerpt)}",)
        size = min(size - 1, int(len(excerpt) * room / spent * SHRINK))
    return ()


def _cut_end(text: str, size: int) -> tuple[str, int]:
    """Return the last whole lines in the last `size` characters of a text, and their number."""
    tail = text[-size:]
    if len(tail) < len(text) and text[-size - 1] != "\n" and "\n" in tail:
        tail = tail.partition("\n")[2]
    elif len(tail) < len(text) and "\n" not in tail:
        tail = f"…{tail}"
    return tail, tail.count("\n") + 1


TOOL = RunCommand()
