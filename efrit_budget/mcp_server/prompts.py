"""The prompt of the MCP server: a project's memories as one text."""

from pathlib import Path

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from efrit_budget.app import Application
from efrit_budget.errors import EfritError, JsonObject

CONTEXT_PACK = Prompt(
    name="context_pack",
    description="What earlier sessions learned about this project, packed into a token budget",
    arguments=[
        PromptArgument(name="query", description="only memories with these words"),
        PromptArgument(name="tokens", description="the budget; 2000 if not given"),
    ],
)


def context_pack(
    application: Application, root: Path, arguments: dict[str, str]
) -> GetPromptResult:
    """Return the memories of the project at `root`, packed as the arguments say."""
    params: JsonObject = {"project": root.name, "query": arguments.get("query", "")}
    tokens = arguments.get("tokens")
    if tokens:
        params["tokens"] = tokens
    try:
        text = application.call("memory/pack", params)["text"]
    except EfritError as error:
        raise MCPError(INVALID_PARAMS, error.message) from error
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=CONTEXT_PACK.description, messages=[message])
