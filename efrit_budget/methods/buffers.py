"""The method `buffers/sync`, which receives the texts of unsaved buffers."""

from typing import Annotated

from pydantic import Field

from efrit_budget.characters import sound_text
from efrit_budget.errors import Json, field_error
from efrit_budget.methods.params import SessionParams
from efrit_budget.project.handover import HandoverError, take_text
from efrit_budget.sessions.store import SessionStore
from efrit_budget.toolcalls.buffers import SessionProjects
from efrit_budget.wire.method import Call, Lane, Method


class SyncParams(SessionParams):
    """The params of `buffers/sync`."""

    path: Annotated[str, Field(min_length=1)]
    text: str | None = None
    text_file: str | None = None
    stale: bool = False


class BufferMethods:
    """Receives unsaved buffers."""

    def __init__(self, sessions: SessionStore, projects: SessionProjects) -> None:
        self._sessions = sessions
        self._projects = projects

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [Method("buffers/sync", SyncParams, self._sync, Lane.ORDERED)]

    def _sync(self, params: SyncParams, call: Call) -> Json:
        text = _buffer_text(params, call)
        session = self._sessions.get_open(params.session_id)
        located = self._projects.of(session).locate(params.path)
        unsaved = self._projects.set_buffer(session, located.path, text, stale=params.stale)
        return {"session_id": session.id, "path": located.shown, "unsaved": unsaved}


def _buffer_text(params: SyncParams, call: Call) -> str | None:
    """Return the buffer's text, from a handover file if one is given; None if it was saved."""
    if params.model_fields_set.isdisjoint(("text", "text_file")):
        raise field_error("text", "needed, or text_file; null withdraws what was told")
    if params.text_file is None:
        return None if params.text is None else sound_text(params.text)
    if params.text is not None:
        raise field_error("text_file", "not beside a text")
    if call.handover is None:
        raise field_error("text_file", "no handover_folder was named in initialize")
    try:
        return take_text(call.handover, params.text_file)
    except HandoverError as error:
        raise field_error("text_file", str(error)) from error
