"""The `worklog/*` methods of the budget view."""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from efrit_budget.conversation.user_edits import UserEdits
from efrit_budget.errors import Json
from efrit_budget.methods.params import SessionParams
from efrit_budget.results.tokens import number_of
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import SessionStore
from efrit_budget.wire.method import Call, Lane, Method, Offset


class WorklogListParams(SessionParams):
    """The params of `worklog/list`."""

    states: list[Literal["announced", "full", "compressed", "gone"]] | None = None
    offset: Offset = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1_000


class EntryParams(SessionParams):
    """The params of methods that take the handle of an entry."""

    handle: Annotated[str, Field(min_length=1, max_length=20)]


class WorklogShowParams(EntryParams):
    """The params of `worklog/show`."""

    most: Offset | None = None


class WorklogMethods:
    """Lists, shows, pins, unpins, drops, restores and evicts the entries of tool calls."""

    def __init__(self, sessions: SessionStore, edits: UserEdits) -> None:
        self._sessions = sessions
        self._edits = edits

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        changes = {
            "worklog/pin": self._edits.pin,
            "worklog/unpin": self._edits.unpin,
            "worklog/drop": self._edits.drop,
            "worklog/restore": self._edits.restore,
        }
        edit_methods = [
            Method(name, EntryParams, self._changing(change), Lane.WRITING)
            for name, change in changes.items()
        ]
        return [
            Method("worklog/list", WorklogListParams, self._list),
            Method("worklog/show", WorklogShowParams, self._show),
            *edit_methods,
            Method("worklog/evict", SessionParams, self._evict, Lane.WRITING),
        ]

    def _list(self, params: WorklogListParams, _: Call) -> Json:
        session = self._sessions.get(params.session_id)
        return self._edits.list(session, params.states, params.offset, params.limit)

    def _show(self, params: WorklogShowParams, _: Call) -> Json:
        session = self._sessions.get(params.session_id)
        return self._edits.show(session, number_of(params.handle), params.most)

    def _evict(self, params: SessionParams, _: Call) -> Json:
        return self._edits.evict_all(self._sessions.get_open(params.session_id))

    def _changing(
        self, change: Callable[[Session, int], dict[str, Json]]
    ) -> Callable[[EntryParams, Call], Json]:
        def run(params: EntryParams, _: Call) -> Json:
            session = self._sessions.get_open(params.session_id)
            return change(session, number_of(params.handle))

        return run
