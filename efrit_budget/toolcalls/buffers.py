"""The project of each session, with the buffers that Emacs has not saved."""

import threading
from collections.abc import Sequence
from pathlib import Path

from efrit_budget.project.project import Project
from efrit_budget.project.secrets import Secrets
from efrit_budget.project.specs import Specs
from efrit_budget.sessions.rows import Session


class SessionProjects:
    """The project and unsaved buffers of each session; a stale buffer's file changed on disk."""

    def __init__(
        self, extra_roots: Sequence[Path], secret_files: Sequence[str], specs: Specs
    ) -> None:
        self._extra_roots = tuple(extra_roots)
        self._secrets = Secrets(tuple(secret_files))
        self._specs = specs
        self._lock = threading.Lock()
        self._buffers: dict[str, dict[Path, str]] = {}
        self._stale: dict[str, set[Path]] = {}

    def of(self, session: Session) -> Project:
        """Return the project of a session with its unsaved buffers."""
        with self._lock:
            buffers = dict(self._buffers.get(session.id, {}))
            stale = frozenset(self._stale.get(session.id, ()))
        return Project(
            Path(session.root), self._extra_roots, self._secrets, buffers, self._specs, stale
        )

    def set_buffer(self, session: Session, path: Path, text: str | None, *, stale: bool) -> int:
        """Store an unsaved buffer, or remove it if its text is None; return how many are stored."""
        with self._lock:
            buffers = self._buffers.setdefault(session.id, {})
            stale_paths = self._stale.setdefault(session.id, set())
            stale_paths.discard(path)
            if text is None:
                buffers.pop(path, None)
            else:
                buffers[path] = text
                stale_paths |= {path} if stale else set()
            return len(buffers)

    def forget_buffers(self, session_id: str) -> None:
        """Forget the buffers of a session that has ended."""
        with self._lock:
            self._buffers.pop(session_id, None)
            self._stale.pop(session_id, None)
