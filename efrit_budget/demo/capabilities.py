"""What each model takes: the table of models, and what newer ones refuse."""

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
    """What a model takes."""

    model: Model
    is_older: bool
    """Takes sampling parameters, a thinking budget, and a forced choice of tools."""
    task_budgets: bool

    @property
    def always_thinks(self) -> bool:
        """Whether thinking cannot be turned off; these are the models that bind it, too."""
        return self.model.binding


def capabilities(name: str) -> Capabilities:
    """What the model of that name takes; an unknown one is not found."""
    if not is_known(name):
        raise ApiError(f"model: {name}", status=404)
    return Capabilities(
        model=model_named(name),
        is_older=OLDER.fullmatch(name) is not None,
        task_budgets=WITH_TASK_BUDGETS.fullmatch(name) is not None,
    )


def is_known(name: str) -> bool:
    """Whether the name is one of the table, or one with a date behind it."""
    known = (re.fullmatch(re.escape(entry) + SUFFIX, name) for entry in _entries())
    return OLDER.fullmatch(name) is not None or any(known)


@cache
def _entries() -> tuple[str, ...]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return tuple(entry for entry in table if entry != DEFAULT)
