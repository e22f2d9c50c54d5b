"""Load what each model can do, from a data file and the person's additions."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from efrit_budget.budget.calibration import HIGHEST, LOWEST
from efrit_budget.budget.families import CLAUDE, family_names
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
    family: str
    factor: float
    system_messages: bool
    binding: bool
    adaptive_thinking: bool
    task_budgets: bool
    least_cacheable: int
    window_known: bool = True


NOT_IN_TABLE = ("name", "window_known")
FIELDS = {field.name: field.type for field in fields(Model) if field.name not in NOT_IN_TABLE}
KINDS: Mapping[object, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
}
RANGES: Mapping[str, tuple[float, float]] = {
    "window": (1_000, 1_000_000_000),
    "max_output": (1, 1_000_000_000),
    "factor": (LOWEST, HIGHEST),
    "least_cacheable": (0, 1_000_000_000),
}


def model_named(name: str, additions: Path | None = None) -> Model:
    """Return the values of the longest entry that begins the name, or of the entry `default`.

    The name counts as it is given and as its maker writes it, without what a router adds.
    """
    return _model(name, additions if additions is not None and additions.is_file() else None)


def known_names(additions: Path | None = None) -> list[str]:
    """Return the entries for Claude's models and those of the person's additions, in order."""
    added = _read(additions) if additions is not None and additions.is_file() else {}
    ours = [entry for entry in _read(TABLE) if entry.startswith(f"{CLAUDE}-")]
    return [entry for entry in dict.fromkeys((*ours, *added)) if entry != DEFAULT]


@lru_cache(maxsize=64)
def _model(name: str, additions: Path | None) -> Model:
    table: dict[str, JsonObject] = {}
    for file in (TABLE, additions):
        entries = _read(file) if file is not None else {}
        for entry in sorted(entries, key=_generality):
            own = entries[entry]
            known = {"window_known": True} if "window" in own and entry != DEFAULT else {}
            table[entry] = {**_base(table, entry), **own, **known}
    return Model(**{**_base(table, name, _plain(name)), "name": name})


def _generality(entry: str) -> tuple[bool, int]:
    """Return the sort key that puts general entries before specific ones."""
    return entry != DEFAULT, len(entry)


def _plain(name: str) -> str:
    """Return a model's name in small letters, without a router's vendor, Claude's without dots."""
    plain = name.rpartition("/")[2].lower()
    return plain.replace(".", "-") if plain.startswith(CLAUDE) else plain


def _base(table: Mapping[str, JsonObject], *names: str) -> JsonObject:
    """Return the values of the longest entry that begins one of the names, or of `default`."""
    fitting = [entry for entry in table if any(name.startswith(entry) for name in names)]
    return table.get(max(fitting, key=len, default=DEFAULT), {"window_known": False})


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
    if name == "family" and value not in family_names():
        return f"no family {value}; there are {', '.join(family_names())}"
    lowest, highest = RANGES.get(name, (value, value))
    return None if lowest <= value <= highest else f"{name} must be from {lowest:,} to {highest:,}"
