"""The tools of other servers as they are offered: names, descriptions, schemas."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from mcp_types import Tool

from efrit_budget.errors import JsonObject
from efrit_budget.gateway.child import ChildServer

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
MAX_TOKENS: JsonObject = {"type": "integer"}
SESSION: JsonObject = {"type": "string"}
"""The schema of `session`, an argument of every tool over MCP; the instructions explain it."""
ADDED = {"max_tokens": MAX_TOKENS, "session": SESSION}
"""The arguments that tools take over MCP besides their own."""
FIRST_SENTENCE = re.compile(r"\s*(.+?)(?:[.!?](?=\s)|\n|$)", re.DOTALL)
LONGEST_SENTENCE = 160
LEFT_OUT = {"description", "title", "examples", "example", "default", "$schema", "$comment"}
"""The keywords of a schema that a short one lacks; what they say, `tool_help` shows."""
NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""The keywords whose members are schemas under any name."""


@dataclass(frozen=True)
class Offer:
    """A tool of another server."""

    child: ChildServer
    tool: Tool
    """The tool as its server lists it."""
    offered: Tool
    """The tool as we list it."""

    def arguments_for_child(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments of a call without those that we added."""
        theirs = properties_of(self.tool.input_schema)
        return {
            name: value for name, value in arguments.items() if name not in ADDED or name in theirs
        }


@dataclass(frozen=True)
class Choice:
    """Which tools of other servers are offered, by patterns of names, and whether shortened."""

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    short: bool = False
    added: JsonObject = field(default_factory=lambda: ADDED)
    """The arguments that each tool takes besides its own, unless it has one of the same name."""

    def offers(self, child: ChildServer, tools: Iterable[Tool]) -> list[Offer]:
        """Return the tools of a server that are offered."""
        return [
            Offer(child, tool, self._offered(name, tool))
            for tool in tools
            if self._allows(name := offered_name(child.name, tool.name))
        ]

    def _allows(self, name: str) -> bool:
        is_allowed = not self.allow or any(fnmatchcase(name, each) for each in self.allow)
        return is_allowed and not any(fnmatchcase(name, each) for each in self.deny)

    def _offered(self, name: str, tool: Tool) -> Tool:
        description = tool.description or ""
        schema = tool.input_schema
        if self.short:
            description, schema = first_sentence(description), short_schema(schema)
        properties = {**self.added, **properties_of(schema)}
        return Tool(
            name=name,
            description=description,
            input_schema={**schema, "type": "object", "properties": properties},
            annotations=tool.annotations,
        )


def properties_of(schema: JsonObject) -> JsonObject:
    """Return the arguments in a schema, none if what another server wrote there is no object."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def offered_name(server: str, tool: str) -> str:
    """Return the name of a server's tool, with other signs than names may have replaced."""
    return NOT_IN_NAMES.sub("_", f"{server}__{tool}")[:LONGEST_NAME]


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, or its beginning if it is long."""
    matched = FIRST_SENTENCE.match(text)
    sentence = " ".join(matched[1].split()) if matched else ""
    return sentence if len(sentence) <= LONGEST_SENTENCE else f"{sentence[:LONGEST_SENTENCE]}…"


def short_schema(schema: JsonObject) -> JsonObject:
    """Return a schema without the words in it: names, types and choices stay."""
    short: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in LEFT_OUT:
            continue
        if keyword in NAMED and isinstance(value, dict):
            short[keyword] = {name: _short(member) for name, member in value.items()}
        elif keyword in ("enum", "const", "required"):
            short[keyword] = value
        else:
            short[keyword] = _short(value)
    return short


def _short(value: object) -> object:
    if isinstance(value, dict):
        return short_schema(value)
    return [_short(each) for each in value] if isinstance(value, list) else value
