"""The project of each session, and `buffers/sync`: what Emacs has modified and not saved."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import Json, field_error
from efrit_budget.project.handover import HandoverError, taken
from efrit_budget.project.project import Project
from efrit_budget.project.secrets import Secrets
from efrit_budget.project.specs import Specs
from efrit_budget.results.sound import sound_text
from efrit_budget.sessions.store import Session, SessionStore
from efrit_budget.wire.method import Call, Lane, Method, Params


class SyncParams(Params):
    """The params of `buffers/sync`."""

    session_id: Annotated[str, Field(min_length=1, max_length=64)]
    path: Annotated[str, Field(min_length=1)]
    text: str | None = None
    text_file: str | None = None
    stale: bool = False


class Projects:
    """Where each session's tools may look; buffers live as long as this process."""

    def __init__(
        self,
        sessions: SessionStore,
        extra_roots: Sequence[Path],
        secret_files: Sequence[str],
        specs: Specs,
    ) -> None:
        self._sessions = sessions
        self._extra_roots = tuple(extra_roots)
        self._secrets = Secrets(tuple(secret_files))
        self._specs = specs
        self._lock = threading.Lock()
        self._buffers: dict[str, dict[Path, str]] = {}
        self._stale: dict[str, set[Path]] = {}

    def methods(self) -> list[Method]:
        """The method by which a client tells of its buffers, in force at once."""
        return [Method("buffers/sync", SyncParams, self._sync, Lane.ORDERED)]

    def of(self, session: Session) -> Project:
        """The project as it stands."""
        with self._lock:
            buffers = dict(self._buffers.get(session.id, {}))
            stale = frozenset(self._stale.get(session.id, ()))
        return Project(
            Path(session.root), self._extra_roots, self._secrets, buffers, self._specs, stale
        )

    def forget_buffers(self, session_id: str) -> None:
        """Forget what was told of a session's buffers: the session has ended."""
        with self._lock:
            self._buffers.pop(session_id, None)
            self._stale.pop(session_id, None)

    def _sync(self, params: SyncParams, call: Call) -> Json:
        text = _text(params, call)
        session = self._sessions.get_open(params.session_id)
        located = self.of(session).locate(params.path)
        with self._lock:
            buffers = self._buffers.setdefault(session.id, {})
            stale = self._stale.setdefault(session.id, set())
            stale.discard(located.path)
            if text is None:
                buffers.pop(located.path, None)
            else:
                buffers[located.path] = text
                stale |= {located.path} if params.stale else set()
        return {"session_id": session.id, "path": located.shown, "unsaved": len(buffers)}


def _text(params: SyncParams, call: Call) -> str | None:
    """The text that is told, or null; a file that was left for it is taken in any case."""
    if params.model_fields_set.isdisjoint(("text", "text_file")):
        raise field_error("text", "needed, or text_file; null withdraws what was told")
    if params.text_file is None:
        return None if params.text is None else sound_text(params.text)
    if params.text is not None:
        raise field_error("text_file", "not beside a text")
    if call.handover is None:
        raise field_error("text_file", "no handover_folder was named in initialize")
    try:
        return taken(call.handover, params.text_file)
    except HandoverError as error:
        raise field_error("text_file", str(error)) from error
