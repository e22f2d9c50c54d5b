"""The models that the endpoint serves."""

import re
from dataclasses import replace
from datetime import UTC, datetime

from efrit_budget.budget.models import Model, known_names, model_named
from efrit_budget.errors import Json, JsonObject

OLDER = re.compile(r"claude-(opus-4(-[0-6])?|sonnet-4(-\d)?|haiku-4(-\d)?)(-\d{8})?")
"""Models before those of the table, or with fewer restrictions."""
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
"""The age that the listing gives each model."""


class Catalog:
    """The models of the table and older ones, and others by name, as they are in `default`."""

    def __init__(self, others: tuple[str, ...] = (), window: int | None = None) -> None:
        self._names = [*known_names(), *others]
        known = "|".join(map(re.escape, self._names))
        self._known = re.compile(rf"({known})(-\d{{8}}|-latest)?")
        self._window = window

    def find(self, name: str) -> Model | None:
        """Return a model by its name, also with a date or -latest behind it; None if unknown."""
        if not self._known.fullmatch(name) and not OLDER.fullmatch(name):
            return None
        model = model_named(name)
        return replace(model, window=min(model.window, self._window or model.window))

    def listing(self) -> JsonObject:
        """Return the reply to `GET /v1/models`, in a form that serves the clients of both APIs."""
        return {
            "object": "list",
            "data": [self._entry(name) for name in self._names],
            "has_more": False,
            "first_id": self._names[0],
            "last_id": self._names[-1],
        }

    def _entry(self, name: str) -> JsonObject:
        """Return a model of the listing; its window only if the endpoint has one of its own."""
        entry: dict[str, Json] = {
            "id": name,
            "object": "model",
            "type": "model",
            "created": int(CREATED.timestamp()),
            "created_at": CREATED.isoformat(),
            "owned_by": "demo",
            "display_name": name,
            "lifecycle": "active",
        }
        if self._window is not None:
            members = ("max_model_len", "context_length", "max_input_tokens")
            entry |= dict.fromkeys(members, min(self._window, model_named(name).window))
        return entry
