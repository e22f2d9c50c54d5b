"""Scenario files: the replies of the scripted model."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from efrit_budget.demo.refusals import TYPES
from efrit_budget.errors import EfritError, JsonObject

BUILT_IN = Path(__file__).with_name("scenarios")
DEFAULT = "tour"
MOST_STEPS = 100_000


StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


class ScenarioError(EfritError):
    """A scenario file is invalid."""


class Part(BaseModel):
    """A table of a scenario file, without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ScriptedCall(Part):
    """A tool call of the scripted model."""

    name: str
    input: JsonObject = {}
    input_json: str | None = None
    find: dict[str, str] = {}
    otherwise: JsonObject | None = None

    @model_validator(mode="after")
    def _patterns_are_sound(self) -> Self:
        for name, pattern in self.find.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"find.{name}: {error}") from error
        return self


class Entry(Part):
    """A reply, a fault, or a repeated group of these."""

    thinking: str = ""
    text: str = ""
    tool: tuple[ScriptedCall, ...] = Field(default=(), strict=False)
    stop_reason: StopReason | None = None
    delay_ms: Annotated[float, Field(ge=0, le=60_000)] = 0
    wait_ms: Annotated[float, Field(ge=0, le=600_000)] = 0
    expect_contains: str | None = None
    empty: bool = False
    interleaved: bool = False
    complete_input: bool = False
    comments: bool = False
    done: bool | None = None
    usage: Literal["none", "zero", "finish"] | None = None
    index: Literal["none", "zero"] | None = None
    ids: tuple[str, ...] = Field(default=(), strict=False)
    no_ids: bool = False
    big_event: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    status: Literal[200] | Annotated[int, Field(ge=400, le=599)] | None = None
    error_body: str | None = None
    content_type: str = "application/json"
    redirect: str | None = None
    retry_after: Annotated[float, Field(ge=0)] | None = None
    retry_at: float | None = None
    message: str | None = None
    cut: Literal["text", "tool_input"] | None = None
    malformed: bool = False
    error_event: str | None = None
    repeat: Annotated[int, Field(ge=1, le=10_000)] = 1
    replies: tuple[Entry, ...] = Field(default=(), strict=False)

    @property
    def is_fault(self) -> bool:
        """Return whether the entry is a fault, after which the client has to repeat its request."""
        faults = (self.status, self.redirect, self.cut, self.error_event, self.malformed)
        return any(faults)

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        says = bool(self.text or self.thinking or self.tool)
        if self.replies and (says or self.status):
            raise ValueError("a group holds replies and nothing else")
        if not (self.replies or says or self.is_fault or self.empty):
            raise ValueError("it says nothing: text, thinking, tool, status, empty or replies")
        if self.empty and says:
            raise ValueError("an empty reply has no text, thinking or tool")
        if self.cut == "tool_input" and not self.tool:
            raise ValueError('cut = "tool_input" needs a tool')
        if self.cut == "text" and not self.text:
            raise ValueError('cut = "text" needs a text')
        if self.error_event is not None and self.error_event not in TYPES.values():
            raise ValueError(f"error_event: one of {', '.join(sorted(set(TYPES.values())))}")
        return self

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.error_body is not None and not (self.status or self.error_event):
            raise ValueError("error_body needs a status or an error_event")
        if self.status == 200 and self.error_body is None:
            raise ValueError("status = 200 needs an error_body")
        if self.cut == "tool_input" and self.complete_input:
            raise ValueError('cut = "tool_input" needs an input in pieces: no complete_input')
        if self.big_event is not None and not self.text:
            raise ValueError("big_event needs a text")
        if self.no_ids and self.ids:
            raise ValueError("ids and no_ids exclude each other")
        return self


class Scenario(Part):
    """The replies of the model in order."""

    title: str = ""
    closing: str = "That is all that I was given to say."
    reply: tuple[Entry, ...] = Field(default=(), strict=False)


@dataclass(frozen=True)
class Step:
    """An entry to play, and the round of its repetition, counted from 1."""

    entry: Entry
    round: int


def steps(scenario: Scenario) -> list[Step]:
    """Return a step for each reply and fault in the order of play; raise if they are too many."""
    played = list(islice(_repeat(scenario.reply, 1), MOST_STEPS + 1))
    if len(played) > MOST_STEPS:
        raise ScenarioError(f"a scenario has at most {MOST_STEPS:,} replies")
    return played


def _repeat(entries: tuple[Entry, ...], outer: int) -> Iterator[Step]:
    """Yield each entry once per round; an entry that is not repeated has its group's round."""
    for entry in entries:
        for number in range(1, entry.repeat + 1):
            turn = number if entry.repeat > 1 else outer
            if entry.replies:
                yield from _repeat(entry.replies, turn)
            else:
                yield Step(entry, turn)


def built_in() -> list[str]:
    """Return the names of the scenarios in the package."""
    return sorted(file.stem for file in BUILT_IN.glob("*.toml"))


def load(named: str) -> Scenario:
    """Return the built-in scenario of this name, or the scenario in this file."""
    file = BUILT_IN / f"{named}.toml" if named in built_in() else Path(named)
    try:
        return parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        names = ", ".join(built_in())
        raise ScenarioError(f"{named}: no such file, and none of the scenarios {names}") from error
    except (OSError, ValueError, ScenarioError) as error:
        raise ScenarioError(f"{named}: {error}") from error


def parse(text: str) -> Scenario:
    """Return a scenario from TOML text."""
    try:
        scenario = Scenario.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ScenarioError(f"{place}: {first['msg']}") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(str(error)) from error
    steps(scenario)
    return scenario
