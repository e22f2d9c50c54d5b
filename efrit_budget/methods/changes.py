"""The `changes/*` methods: make and record edits, undo and redo them."""

from base64 import b64decode
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from efrit_budget.changes.change import ChangeKind, ChangeState
from efrit_budget.changes.file_reports import WantedContents, report
from efrit_budget.changes.journal import Journal
from efrit_budget.changes.planned import PlannedChange, PlannedWrite, Replacement
from efrit_budget.changes.writing import Writer
from efrit_budget.characters import sound_text
from efrit_budget.errors import Json
from efrit_budget.methods.params import SessionParams, ToolUseParams
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import SessionStore
from efrit_budget.storage.database import Database
from efrit_budget.toolcalls.buffers import SessionProjects
from efrit_budget.wire.method import Call, Lane, Method, Number, Offset, Params

MOST_FILES = 1_000
Base64 = Annotated[bytes, BeforeValidator(lambda given: b64decode(given, validate=True))]
GivenPath = Annotated[str, Field(max_length=20_000)]


class ContentsParams(Params):
    """The contents that `changes/check` is to return."""

    most_bytes: Offset
    known: Annotated[list[str], Field(max_length=MOST_FILES)] = Field(default_factory=list)

    def wanted(self) -> WantedContents:
        """Return the contents that are wanted."""
        return WantedContents(self.most_bytes, frozenset(self.known))


class CheckParams(SessionParams):
    """The params of `changes/check`."""

    paths: Annotated[list[GivenPath], Field(max_length=MOST_FILES)]
    contents: ContentsParams | None = None


class FileParams(Params):
    """One entry of `files` in `changes/begin`: a file that is about to be changed."""

    path: GivenPath
    kind: Literal["edit", "create", "delete", "rename"]
    to: GivenPath | None = None
    buffer_text: str | None = None


class BeginParams(ToolUseParams):
    """The params of `changes/begin`."""

    tool: Annotated[str, Field(min_length=1, max_length=200)]
    files: Annotated[list[FileParams], Field(min_length=1, max_length=MOST_FILES)]


class ReplaceParams(Params):
    """The bytes that replace a range of a file's, in Base64."""

    start: Offset = 0
    end: Offset = 0
    data: Base64 = b""


class WriteFileParams(FileParams):
    """One entry of `files` in `changes/write`: a file to change."""

    stamp: Annotated[str, Field(max_length=100)] | None
    replace: ReplaceParams | None = None
    buffer_text_after: str | None = None

    def planned(self) -> PlannedWrite:
        """Return the change that is planned."""
        new = self.replace
        return PlannedWrite(
            self.path,
            ChangeKind(self.kind),
            self.to,
            _replace_surrogates(self.buffer_text),
            self.stamp,
            None if new is None else Replacement(new.start, new.end, new.data),
            _replace_surrogates(self.buffer_text_after),
        )


class WriteParams(ToolUseParams):
    """The params of `changes/write`."""

    tool: Annotated[str, Field(min_length=1, max_length=200)]
    files: Annotated[list[WriteFileParams], Field(min_length=1, max_length=MOST_FILES)]


class EndedParams(Params):
    """One entry of `files` in `changes/end`: a change, and its buffer's text at the end."""

    number: Number
    buffer_text: str | None = None


class EndParams(ToolUseParams):
    """The params of `changes/end`."""

    outcome: Literal["done", "abandoned"]
    files: Annotated[list[EndedParams], Field(max_length=MOST_FILES)] = Field(default_factory=list)


class ListParams(SessionParams):
    """The params of `changes/list`."""

    open_only: bool = False


class NumberParams(SessionParams):
    """The params of methods that take one change of a session."""

    number: Number


class ShowParams(NumberParams):
    """The params of `changes/show`."""

    most: Offset | None = None


class UndoParams(NumberParams):
    """The params of `changes/undo` and `changes/redo`."""

    force: bool = False
    by_person: bool = False


class ReportedParams(SessionParams):
    """The params of `changes/reported`."""

    numbers: Annotated[list[Number], Field(max_length=MOST_FILES)]


class CheckpointParams(SessionParams):
    """The params of `changes/checkpoint`."""

    label: Annotated[str, Field(max_length=200)] = ""


class SinceParams(SessionParams):
    """The params of `changes/since`."""

    checkpoint: Annotated[str, Field(min_length=1, max_length=20)]


class ChangesMethods:
    """Records, shows and undoes file changes."""

    def __init__(
        self, sessions: SessionStore, projects: SessionProjects, database: Database
    ) -> None:
        self._sessions = sessions
        self._projects = projects
        self._database = database

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [
            Method("changes/check", CheckParams, self._check, Lane.SLOW),
            Method("changes/begin", BeginParams, self._begin, Lane.SLOW),
            Method("changes/end", EndParams, self._end, Lane.SLOW),
            Method("changes/write", WriteParams, self._write, Lane.SLOW),
            Method("changes/list", ListParams, self._list, Lane.SLOW),
            Method("changes/show", ShowParams, self._show, Lane.SLOW),
            Method("changes/undo", UndoParams, self._undo, Lane.SLOW),
            Method("changes/redo", UndoParams, self._redo, Lane.SLOW),
            Method("changes/reported", ReportedParams, self._reported, Lane.WRITING),
            Method("changes/checkpoint", CheckpointParams, self._checkpoint, Lane.WRITING),
            Method("changes/since", SinceParams, self._since),
        ]

    def _check(self, params: CheckParams, _: Call) -> Json:
        project = self._projects.of(self._sessions.get(params.session_id))
        wanted = None if params.contents is None else params.contents.wanted()
        return {"files": [report(project, path, wanted) for path in params.paths]}

    def _begin(self, params: BeginParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        edits = [
            PlannedChange(
                file.path, ChangeKind(file.kind), file.to, _replace_surrogates(file.buffer_text)
            )
            for file in params.files
        ]
        changes = self._journal(session).begin(params.tool_use_id, params.tool, edits)
        return {"changes": changes}

    def _end(self, params: EndParams, _: Call) -> Json:
        texts = {file.number: _replace_surrogates(file.buffer_text) for file in params.files}
        outcome = ChangeState(params.outcome)
        return {"changes": self._of(params.session_id).end(params.tool_use_id, outcome, texts)}

    def _write(self, params: WriteParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        planned = [file.planned() for file in params.files]
        return {"changes": self._writer(session).write(params.tool_use_id, params.tool, planned)}

    def remove_scratch(self, session: Session) -> None:
        """Remove what an interrupted write of a session left in its project."""
        self._writer(session).remove_scratch()

    def _list(self, params: ListParams, _: Call) -> Json:
        return self._of(params.session_id).list_changes(open_only=params.open_only)

    def _show(self, params: ShowParams, _: Call) -> Json:
        return self._of(params.session_id).show(params.number, params.most)

    def _undo(self, params: UndoParams, _: Call) -> Json:
        return self._of(params.session_id).undo(
            params.number, force=params.force, by_person=params.by_person
        )

    def _redo(self, params: UndoParams, _: Call) -> Json:
        return self._of(params.session_id).redo(
            params.number, force=params.force, by_person=params.by_person
        )

    def _reported(self, params: ReportedParams, _: Call) -> Json:
        self._of(params.session_id).set_reported(params.numbers)
        return {"numbers": params.numbers}

    def _checkpoint(self, params: CheckpointParams, _: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        return self._journal(session).checkpoint(params.label)

    def _since(self, params: SinceParams, _: Call) -> Json:
        numbers = self._of(params.session_id).since(params.checkpoint)
        return {"checkpoint": params.checkpoint, "numbers": numbers}

    def _of(self, session_id: str) -> Journal:
        """Return the journal of a session, open or closed."""
        return self._journal(self._sessions.get(session_id))

    def _journal(self, session: Session) -> Journal:
        return Journal(self._database, self._projects.of(session), session.id)

    def _writer(self, session: Session) -> Writer:
        return Writer(self._database, self._projects.of(session), session.id)


def _replace_surrogates(text: str | None) -> str | None:
    return None if text is None else sound_text(text)
