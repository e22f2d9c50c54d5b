"""Load what each model can do, from a data file and the person's additions."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from efrit_budget.budget.calibration import HIGHEST, LOWEST
from efrit_budget.errors import EfritError, Json, JsonObject

TABLE = Path(__file__).with_name("models.toml")
DEFAULT = "default"


class ModelTableError(EfritError):
    """A table of models is invalid."""


@dataclass(frozen=True)
class Model:
    """The capabilities of a model; `models.toml` explains those that it has.

    `window_known` is false if the window is only assumed, as that of the entry `default` is.
    """

    name: str
    window: int
    max_output: int
    factor: float
    system_messages: bool
    binding: bool
    adaptive_thinking: bool
    task_budgets: bool
    least_cacheable: int
    window_known: bool = True


NOT_IN_TABLE = ("name", "window_known")
FIELDS = {field.name: field.type for field in fields(Model) if field.name not in NOT_IN_TABLE}
KINDS: Mapping[object, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,)}
RANGES: Mapping[str, tuple[float, float]] = {
    "window": (1_000, 1_000_000_000),
    "max_output": (1, 1_000_000_000),
    "factor": (LOWEST, HIGHEST),
    "least_cacheable": (0, 1_000_000_000),
}


def model_named(name: str, additions: Path | None = None) -> Model:
    """Return the values of the longest entry that begins the name, or of the entry `default`."""
    return _model(name, additions if additions is not None and additions.is_file() else None)


def known_names(additions: Path | None = None) -> list[str]:
    """Return the names of the entries of the table and of the person's additions, in order."""
    added = _read(additions) if additions is not None and additions.is_file() else {}
    return [entry for entry in dict.fromkeys((*_read(TABLE), *added)) if entry != DEFAULT]


@lru_cache(maxsize=64)
def _model(name: str, additions: Path | None) -> Model:
    table = dict(_read(TABLE))
    if additions is not None:
        added = _read(additions)
        for entry in sorted(added, key=_generality):
            table[entry] = {**table[_entry(table, entry)], **added[entry]}
    entry = _entry(table, name)
    return Model(**table[entry], name=name, window_known=entry != DEFAULT)


def _generality(entry: str) -> tuple[bool, int]:
    """Return the sort key that puts general entries before specific ones."""
    return entry != DEFAULT, len(entry)


def _entry(table: Mapping[str, Mapping[str, Json]], name: str) -> str:
    """Return the longest entry that begins the name, or `default`."""
    return max((entry for entry in table if name.startswith(entry)), key=len, default=DEFAULT)


@cache
def _read(file: Path) -> dict[str, JsonObject]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelTableError(f"{file}: {error}") from error
    for entry, values in table.items():
        _check(file, entry, values)
    return table


def _check(file: Path, entry: str, values: Json) -> None:
    if not isinstance(values, dict):
        raise ModelTableError(f"{file}: {entry} is not a table of values")
    for name, value in values.items():
        if problem := _problem(name, value):
            raise ModelTableError(f"{file}: {entry}: {problem}")


def _problem(name: str, value: Any) -> str | None:
    """Return why a value is invalid, or None."""
    if name not in FIELDS:
        return f"no value {name}; there are {', '.join(FIELDS)}"
    kinds = KINDS[FIELDS[name]]
    if type(value) not in kinds:
        return f"{name} must be {FIELDS[name]}"
    lowest, highest = RANGES.get(name, (value, value))
    return None if lowest <= value <= highest else f"{name} must be from {lowest:,} to {highest:,}"
