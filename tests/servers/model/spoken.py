"""Read tool calls in the free text of a model, as crudely as servers do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

MARK, END = "<tool_call>", "</tool_call>"
BEGIN = re.compile(rf'{MARK}|\{{\s*"name"\s*:')
"""What a call begins with; many models leave the mark out."""
MAY_BEGIN = re.compile(r'<\w*$|\{\s*(?:"\w*"?)?\s*$')
NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
ARGUMENTS = re.compile(r'"(?:arguments|parameters|input)"\s*:\s*')


@dataclass(frozen=True)
class Call:
    """A call: a name that may be invented, and arguments that may be no JSON."""

    name: str
    arguments: str


class Spoken:
    """A reply that is being spoken; its text is passed on up to the first call."""

    def __init__(self) -> None:
        self._waiting = ""
        self._calls: str | None = None

    def hear(self, piece: str) -> str:
        """Add a piece, and return the text that can be passed on."""
        if self._calls is not None:
            self._calls += piece
            return ""
        self._waiting += piece
        begun = BEGIN.search(self._waiting)
        if begun:
            self._calls = self._waiting[begun.start() :]
        stop = begun or MAY_BEGIN.search(self._waiting)
        text = self._waiting[: stop.start()] if stop else self._waiting
        self._waiting = self._waiting[len(text) :]
        return text

    def finish(self) -> tuple[str, list[Call]]:
        """Return the rest of the text, and the calls; what names nothing is text."""
        rest = self._waiting if self._calls is None else self._calls
        calls = list(_calls(rest))
        return ("" if calls else rest), calls


def _calls(text: str) -> Iterator[Call]:
    """Yield what each name in a text calls, and with what arguments."""
    names = list(NAME.finditer(text))
    for number, name in enumerate(names, 1):
        end = names[number].start() if number < len(names) else len(text)
        yield Call(name[1], _arguments(text[name.end() : end]))


def _arguments(part: str) -> str:
    """Return the arguments in what follows a name: JSON, or the text if that is none."""
    begun = ARGUMENTS.search(part)
    if begun is None:
        return "{}"
    text = part[begun.end() :].partition(END)[0].strip()
    try:
        return json.dumps(json.JSONDecoder().raw_decode(text)[0])
    except ValueError:
        return text
