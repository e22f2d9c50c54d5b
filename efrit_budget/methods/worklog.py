"""The `worklog/*` methods: what a person does in the budget view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from efrit_budget.errors import Json
from efrit_budget.results.tokens import number_of
from efrit_budget.sessions.store import Session, SessionStore
from efrit_budget.wire.method import Call, Lane, Method, Offset, Params
from efrit_budget.worklog.wishes import Wishes


class ListParams(Params):
    """The params of `worklog/list`."""

    session_id: Annotated[str, Field(min_length=1, max_length=64)]
    states: list[Literal["announced", "full", "compressed", "gone"]] | None = None
    offset: Offset = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1_000


class EntryParams(Params):
    """The params of the methods that take an entry."""

    session_id: Annotated[str, Field(min_length=1, max_length=64)]
    handle: Annotated[str, Field(min_length=1, max_length=20)]


class ShowParams(EntryParams):
    """The params of `worklog/show`."""

    most: Offset | None = None


class WorklogMethods:
    """Listing, showing, pinning, dropping and restoring entries."""

    def __init__(self, sessions: SessionStore, wishes: Wishes) -> None:
        self._sessions = sessions
        self._wishes = wishes

    def methods(self) -> list[Method]:
        """The family's methods."""
        changes = {
            "worklog/pin": self._wishes.pin,
            "worklog/unpin": self._wishes.unpin,
            "worklog/drop": self._wishes.drop,
            "worklog/restore": self._wishes.restore,
        }
        made = [
            Method(name, EntryParams, self._changing(change), Lane.WRITING)
            for name, change in changes.items()
        ]
        return [
            Method("worklog/list", ListParams, self._list),
            Method("worklog/show", ShowParams, self._show),
            *made,
        ]

    def _list(self, params: ListParams, _: Call) -> Json:
        session = self._sessions.get(params.session_id)
        return self._wishes.list(session, params.states, params.offset, params.limit)

    def _show(self, params: ShowParams, _: Call) -> Json:
        session = self._sessions.get(params.session_id)
        return self._wishes.show(session, number_of(params.handle), params.most)

    def _changing(
        self, change: Callable[[Session, int], dict[str, Json]]
    ) -> Callable[[EntryParams, Call], Json]:
        def run(params: EntryParams, _: Call) -> Json:
            session = self._sessions.get_open(params.session_id)
            return change(session, number_of(params.handle))

        return run
