"""The endpoint that a session's requests go to, as the client describes it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache

from efrit_budget.budget.models import Model
from efrit_budget.budget.prices import listed_window


class Api(StrEnum):
    """An API that endpoints speak."""

    MESSAGES = "messages"
    CHAT = "chat"


class Feature(StrEnum):
    """What an endpoint of the API `chat` takes, or asks for, besides plain messages."""

    SYSTEM_MESSAGES = "system-messages"
    """System messages may stand in mid-conversation."""
    DEVELOPER = "developer"
    """The role of system messages is called developer."""
    ALTERNATION = "alternation"
    """User and assistant must alternate, and nothing of the user's may follow a tool's result."""
    SHORT_IDS = "short-ids"
    """The ids of tool calls must be nine letters and digits."""
    IMAGES = "images"
    """User messages may have images."""
    REASONING_BACK = "reasoning-back"
    """The reasoning of a reply has to be sent back with it."""
    THOUGHT_SIGNATURES = "thought-signatures"
    """Tool calls carry signatures, which have to be sent back with them."""


@dataclass(frozen=True)
class Endpoint:
    """An endpoint: its provider's name, its API, its features, and what its model can hold.

    `window` and `max_output` are None where only the table of models knows them.
    """

    provider: str = ""
    api: Api = Api.MESSAGES
    window: int | None = None
    max_output: int | None = None
    features: frozenset[Feature] = frozenset()

    def has(self, feature: Feature) -> bool:
        """Return whether the endpoint has a feature."""
        return feature in self.features

    def limit(self, model: Model) -> Model:
        """Return the model as it can be used here."""
        if self.api is Api.CHAT:
            model = replace(
                model,
                system_messages=self.has(Feature.SYSTEM_MESSAGES),
                binding=False,
                adaptive_thinking=False,
                task_budgets=False,
            )
        listed = listed_window(model.name, self.provider) if self.provider else None
        own_window = self.window or listed
        window = own_window or model.window
        return replace(
            model,
            window=window,
            window_known=own_window is not None or model.window_known,
            max_output=min(self.max_output or model.max_output, window),
        )

    def as_text(self) -> str | None:
        """Return the endpoint as it is stored: a JSON text, or None for one without a description.

        Equal endpoints have equal texts.
        """
        if self == NOT_DESCRIBED:
            return None
        return json.dumps({**asdict(self), "features": sorted(self.features)})


NOT_DESCRIBED = Endpoint()
"""The endpoint of a client that does not describe it: it speaks the Messages API."""


@lru_cache(maxsize=64)
def stored_endpoint(text: str | None) -> Endpoint:
    """Return the endpoint of a text that `Endpoint.as_text` made."""
    if text is None:
        return NOT_DESCRIBED
    members = json.loads(text)
    features = frozenset(map(Feature, members.pop("features")))
    return Endpoint(**members | {"api": Api(members["api"]), "features": features})
