"""The system prompt, the client's tools and the models shared by all simulated sessions."""

from __future__ import annotations

from dataclasses import dataclass

from efrit_budget.errors import Json

PROMPT_LIMIT = 70_000
REAL_LIMIT = 73_500
LOW_WATERS = (0.15, 0.30, 0.45, 0.60, 0.75)
SEEDS = (1, 2, 3, 4, 5)

SYSTEM = (
    "You work inside the person's Emacs, on the project at the root you were given. Use the tools "
    "to look before you change anything. Prefer a narrow search to a wide one, and read only the "
    "part of a file you need. Results end in a line that tells what they cost and what is left; a "
    "result that was cut says how to go on. Older results shrink to a line that names their "
    "handle, and recall_result brings any of them back whole, so never repeat a call only to see "
    "again what it gave. Paths are relative to the root. Every tool takes max_tokens, the most "
    "its result may cost, and continuation_token, which continues a result that was cut.\n\n"
    "Say in a sentence what you are about to do when it is not plain from the call itself. When "
    "you edit, keep to the style of the file; when you are not sure what the person wants, ask. "
    "Do not run commands that change anything outside the project. Secrets are not to be read. "
    "End by saying what you did, what you did not do, and what the person should look at."
)


def _tool(name: str, description: str, **parameters: str) -> dict[str, Json]:
    properties = {
        parameter: {
            "type": "integer" if kind == "integer" else "string",
            "description": parameter.replace("_", " ").capitalize(),
        }
        for parameter, kind in parameters.items()
    }
    return {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": properties},
        "policy": "allow",
    }


CLIENT_TOOLS = (
    _tool(
        "project_files",
        "List the project's files, grouped by folder, ignored ones left out.",
        path="string",
        pattern="string",
        max_files="integer",
        depth="integer",
        sort="string",
    ),
    _tool(
        "search_content",
        "Search the project's files for a regex or a literal; matches by file, with line numbers.",
        pattern="string",
        path="string",
        glob="string",
        case="string",
        context="integer",
        max_matches="integer",
    ),
    _tool(
        "read_file",
        "Read a part of a file, lines numbered.",
        path="string",
        start_line="integer",
        end_line="integer",
        around_line="integer",
    ),
    _tool("vcs_diff", "Show what changed.", path="string", revision="string", context="integer"),
    _tool("vcs_show", "Show a commit.", revision="string", path="string"),
    _tool("vcs_log", "List commits.", path="string", limit="integer", skip="integer"),
    _tool("vcs_blame", "Say which commit wrote each line.", path="string", end_line="integer"),
)


@dataclass(frozen=True)
class Case:
    """One session to simulate: a script, a model, and the truth about its tokenizer."""

    seed: int
    model: str = "claude-sonnet-5-5"
    factor: float = 1.3
    low_water: float | None = None
    """None leaves the default."""
    recall_all: bool = False
    live: bool = False
    """True if the tools run; otherwise the output stored when the script was made is recorded."""


OLDER_MODEL = "claude-sonnet-4-6"
"""Its entry in the table starts at 1.0; the default model's starts at 1.3."""
