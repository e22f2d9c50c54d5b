"""The params that methods of several families have in common."""

from typing import Annotated

from pydantic import Field

from efrit_budget.budget.endpoint import Api, Endpoint, Feature
from efrit_budget.wire.method import Params

SessionId = Annotated[str, Field(min_length=1, max_length=64)]
ToolUseId = Annotated[str, Field(min_length=1, max_length=200)]


class EndpointParams(Params):
    """The endpoint of a request, as the client describes it; see docs/manual/providers.texi."""

    provider: Annotated[str, Field(max_length=100)] = ""
    api: Api = Api.MESSAGES
    window: Annotated[int, Field(ge=1_000, le=1_000_000_000)] | None = None
    max_output: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    features: Annotated[list[Feature], Field(max_length=100)] = Field(default_factory=list)

    def endpoint(self) -> Endpoint:
        """Return the endpoint."""
        return Endpoint(
            self.provider, self.api, self.window, self.max_output, frozenset(self.features)
        )


class SessionParams(Params):
    """The params of methods that take only a session; those of many other methods extend them."""

    session_id: SessionId


class ToolUseParams(SessionParams):
    """The params of methods that take one tool call of a session."""

    tool_use_id: ToolUseId
