"""The method `files/attach`, which turns files of the project into blocks of a message."""

from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from efrit_budget.conversation.conversation import Conversation
from efrit_budget.errors import Json
from efrit_budget.methods.params import EndpointParams, SessionParams
from efrit_budget.sessions.store import SessionStore
from efrit_budget.toolcalls.attachments import Attacher
from efrit_budget.toolcalls.buffers import SessionProjects
from efrit_budget.wire.method import Call, Lane, Method

MOST_FILES = 50
Paths = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_FILES)]


class AttachParams(SessionParams):
    """The params of `files/attach`."""

    paths: Paths
    confirmed: Paths = Field(default_factory=list)
    beside: list[str] = Field(default_factory=list)
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    endpoint: EndpointParams | None = None
    blocks: bool = True


class FileMethods:
    """Attaches files to messages."""

    def __init__(
        self, sessions: SessionStore, conversation: Conversation, projects: SessionProjects
    ) -> None:
        self._sessions = sessions
        self._conversation = conversation
        self._projects = projects

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [Method("files/attach", AttachParams, self._attach, Lane.SLOW)]

    def _attach(self, params: AttachParams, call: Call) -> Json:
        session = self._sessions.get_open(params.session_id)
        endpoint = None if params.endpoint is None else params.endpoint.endpoint()
        attacher = Attacher(
            self._projects.of(session),
            self._conversation.bounds(session, params.model, endpoint),
            call.cancellation.check,
            frozenset(params.confirmed),
            only_count=not params.blocks,
        )
        attached = [asdict(each) for each in attacher.attach(params.paths, params.beside)]
        for each in attached:
            if not params.blocks:
                del each["blocks"]
        return {"attachments": attached}
