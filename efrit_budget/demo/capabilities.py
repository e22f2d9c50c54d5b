"""Look up the capabilities of models, and reject what newer ones reject."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from efrit_budget.budget.models import DEFAULT, TABLE, Model, model_named
from efrit_budget.demo.refusals import ApiError

OLDER = re.compile(r"claude-(opus-4(-[0-6])?|sonnet-4(-\d)?|haiku-4(-\d)?)(-\d{8})?")
WITH_TASK_BUDGETS = re.compile(r"claude-(opus-(4-[78]|5)|sonnet-5-5|haiku-5-5)\b.*")
SUFFIX = r"(-\d{8}|-latest)?"


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a model."""

    model: Model
    is_older: bool
    """Whether it accepts sampling parameters, a thinking budget and a forced tool choice."""
    task_budgets: bool

    @property
    def always_thinks(self) -> bool:
        """Return whether thinking cannot be turned off; such models also bind it."""
        return self.model.binding


def capabilities(name: str) -> Capabilities:
    """Return the capabilities of a model; raise if it is unknown."""
    if not is_known(name):
        raise ApiError(f"model: {name}", status=404)
    return Capabilities(
        model=model_named(name),
        is_older=OLDER.fullmatch(name) is not None,
        task_budgets=WITH_TASK_BUDGETS.fullmatch(name) is not None,
    )


def is_known(name: str) -> bool:
    """Return whether a name is in the table, with or without a date."""
    known = (re.fullmatch(re.escape(entry) + SUFFIX, name) for entry in _entries())
    return OLDER.fullmatch(name) is not None or any(known)


@cache
def _entries() -> tuple[str, ...]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(entry for entry in table if entry != DEFAULT)
