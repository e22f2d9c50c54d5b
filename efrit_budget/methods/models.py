"""The method `models/list`: the known models, their prices, and what a prompt would cost."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from efrit_budget.budget.endpoint import Endpoint
from efrit_budget.budget.models import known_names, model_named
from efrit_budget.budget.prices import listed_models, million_prices
from efrit_budget.conversation.conversation import Conversation
from efrit_budget.errors import Json, JsonObject
from efrit_budget.methods.params import EndpointParams, SessionId
from efrit_budget.sessions.store import SessionStore
from efrit_budget.wire.method import Call, Method, Params

ModelName = Annotated[str, Field(min_length=1, max_length=200)]


class ModelListParams(Params):
    """The params of `models/list`; without names, the models are those that are known."""

    endpoint: EndpointParams = EndpointParams()
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
        endpoint = params.endpoint.endpoint()
        names = self._known_names(endpoint) if params.names is None else params.names
        prompts: dict[str, JsonObject] = {}
        if params.session_id is not None:
            session = self._sessions.get(params.session_id)
            prompts = self._conversation.next_prompts(
                session, names, endpoint, caching=params.caching
            )
        return {
            "models": [self._described(name, endpoint) | prompts.get(name, {}) for name in names]
        }

    def _known_names(self, endpoint: Endpoint) -> list[str]:
        """Return the names of an endpoint's models, from the price list or the table of models."""
        if endpoint.provider:
            return listed_models(endpoint.provider)
        return known_names(self._additions)

    def _described(self, name: str, endpoint: Endpoint) -> JsonObject:
        model = endpoint.limit(model_named(name, self._additions))
        return {
            "name": name,
            "window": model.window,
            "window_known": model.window_known,
            "max_output": model.max_output,
            "adaptive_thinking": model.adaptive_thinking,
            "dollars": million_prices(name, endpoint.provider),
        }
