"""The switches that make the endpoint as strict as some servers are."""

from collections.abc import Mapping
from typing import Final

from efrit_budget.demo.conversation import ParsedRequest, Placed, as_blocks
from efrit_budget.demo.refusals import ApiError

NO_USAGE: Final = "no-usage"
WHOLE_WINDOW: Final = "whole-window"
STRICT: Mapping[str, str] = {
    "alternation": "user and assistant must alternate, no user behind a tool's result",
    "no-system-later": "a system message stands first or nowhere",
    "developer": "the role system is unknown",
    "no-developer": "the role developer is unknown",
    "short-ids": "a tool call's id has nine letters and digits",
    "thought-signatures": "the first tool call of each step carries a signature",
    "reasoning-back": "thinking has to come back with the tool calls",
    "no-reasoning-back": "thinking must not come back",
    "max-tokens": "max_completion_tokens is unknown",
    "max-completion-tokens": "max_tokens is refused",
    "few-fields": "only the fields that most servers know are known",
    "no-stream-options": "stream_options is unknown",
    "no-empty": "a message or a text must not be empty",
    "no-null": "a content must not be null",
    "no-parts": "a content is a string",
    "no-images": "images are refused",
    "no-tools": "tools are refused",
    WHOLE_WINDOW: "the window must hold the prompt and max_tokens",
    NO_USAGE: "replies have no usage",
}
"""Each switch by its name, and what it does; docs/demo-model.md names the servers."""


def check_strict(request: ParsedRequest, strict: frozenset[str]) -> None:
    """Raise if a request breaks a rule of the switches that hold for all APIs."""
    if "no-tools" in strict and request.tools:
        raise ApiError(f"{request.model} does not support tools")
    if "no-system-later" in strict and any(turn.role == "system" for turn in request.turns):
        raise ApiError("System message must be at the beginning.")
    if "no-images" in strict and any(map(_has_image, request.all_blocks())):
        raise ApiError("image input is not supported")


def _has_image(placed: Placed) -> bool:
    inner = as_blocks(placed.block.get("content") or [])
    return any(block["type"] == "image" for block in (placed.block, *inner))
