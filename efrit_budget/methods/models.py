"""The method `models/list`: the known models, their prices, and what a prompt would cost."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from efrit_budget.budget.models import known_names, model_named
from efrit_budget.budget.prices import million_prices
from efrit_budget.conversation.conversation import Conversation
from efrit_budget.errors import Json, JsonObject
from efrit_budget.methods.params import SessionId
from efrit_budget.sessions.store import SessionStore
from efrit_budget.wire.method import Call, Method, Params

ModelName = Annotated[str, Field(min_length=1, max_length=200)]


class ModelListParams(Params):
    """The params of `models/list`."""

    names: Annotated[list[ModelName], Field(max_length=100)] | None = None
    session_id: SessionId | None = None
    caching: bool = True


class ModelMethods:
    """Lists models."""

    def __init__(self, sessions: SessionStore, conversation: Conversation, additions: Path) -> None:
        self._sessions = sessions
        self._conversation = conversation
        self._additions = additions

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [Method("models/list", ModelListParams, self._list)]

    def _list(self, params: ModelListParams, _: Call) -> Json:
        names = known_names(self._additions) if params.names is None else params.names
        prompts: dict[str, JsonObject] = {}
        if params.session_id is not None:
            session = self._sessions.get(params.session_id)
            prompts = self._conversation.next_prompts(session, names, caching=params.caching)
        return {"models": [self._described(name) | prompts.get(name, {}) for name in names]}

    def _described(self, name: str) -> JsonObject:
        model = model_named(name, self._additions)
        return {
            "name": name,
            "window": model.window,
            "max_output": model.max_output,
            "adaptive_thinking": model.adaptive_thinking,
            "dollars": million_prices(name),
        }
