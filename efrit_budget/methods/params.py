"""The params that methods of several families have in common."""

from typing import Annotated

from pydantic import Field

from efrit_budget.wire.method import Params

SessionId = Annotated[str, Field(min_length=1, max_length=64)]
ToolUseId = Annotated[str, Field(min_length=1, max_length=200)]


class SessionParams(Params):
    """The params of methods that take only a session; those of many other methods extend them."""

    session_id: SessionId


class ToolUseParams(SessionParams):
    """The params of methods that take one tool call of a session."""

    tool_use_id: ToolUseId
