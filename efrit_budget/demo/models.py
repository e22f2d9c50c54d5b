"""The models that the endpoint serves."""

import re
import tomllib

from efrit_budget.budget.models import DEFAULT, TABLE, Model, model_named

OLDER = re.compile(r"claude-(opus-4(-[0-6])?|sonnet-4(-\d)?|haiku-4(-\d)?)(-\d{8})?")
"""Models before those of the table, or with fewer restrictions."""


class Catalog:
    """The models of the table, and older ones."""

    def __init__(self) -> None:
        table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
        self.names = [entry for entry in table if entry != DEFAULT]
        known = "|".join(map(re.escape, self.names))
        self._known = re.compile(rf"({known})(-\d{{8}}|-latest)?")

    def find(self, name: str) -> Model | None:
        """Return a model by its name, also with a date or -latest behind it; None if unknown."""
        if not self._known.fullmatch(name) and not OLDER.fullmatch(name):
            return None
        return model_named(name)
