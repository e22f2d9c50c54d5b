"""Choose the servers that a session starts, and which of their tools it is offered."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from efrit_budget.errors import Json, JsonObject
from efrit_budget.gateway.configuration import (
    ConfigurationError,
    ServerEntry,
    check_name,
    read_servers,
)
from efrit_budget.gateway.wanted import OWN, ServedTool, Wanted
from efrit_budget.methods.servers import StartParams
from efrit_budget.tools.validation import schema_problem

PROJECT_FILE = ".mcp.json"


def describe_project(root: Path) -> JsonObject:
    """Return what the file of a project would start, for the person to decide about."""
    file = root / PROJECT_FILE
    reply: JsonObject = {"digest": None, "servers": [], "variables": [], "problem": None}
    if not file.exists():
        return reply
    try:
        found = read_servers(file)
    except ConfigurationError as error:
        return reply | {"problem": error.message}
    return reply | {
        "digest": found.digest,
        "servers": [{"name": name, "command": line} for name, line in found.lines()],
        "variables": found.variables(),
    }


def choose_servers(root: Path, params: StartParams) -> tuple[Wanted, list[str]]:
    """Return the servers to start, and notes about those of the project."""
    own = [
        ServerEntry(check_name(name), server.command[0], server.command[1:], server.env, server.cwd)
        for name, server in params.servers.items()
    ]
    theirs, notes = _of_project(root, params)
    entries = [replace(entry, cwd=str(root / (entry.cwd or ""))) for entry in (*own, *theirs)]
    wanted = Wanted(entries, params.allow, params.deny, params.short, params.seconds)
    return wanted, notes


def _of_project(root: Path, params: StartParams) -> tuple[list[ServerEntry], list[str]]:
    """Return the servers of the project's file, if the person agreed to its content, and notes."""
    if params.project is None:
        return [], []
    try:
        found = read_servers(root / PROJECT_FILE)
        if found.digest != params.project:
            return [], [f"{PROJECT_FILE} has changed since the person agreed: nothing in it runs"]
        entries = found.entries({**os.environ, **params.variables})
    except ConfigurationError as error:
        return [], [error.message]
    notes = [f"{PROJECT_FILE}: {name} is left out: it has no command" for name in found.left_out]
    taken = [name for name in found.servers if name in params.servers]
    notes += [f"{PROJECT_FILE}: {name} is left out: it is yours" for name in taken]
    return [entry for entry in entries if entry.name not in taken], notes


def merge_tools(
    before: Mapping[str, JsonObject], wanted: Wanted, listed: Mapping[str, Sequence[ServedTool]]
) -> dict[str, Json]:
    """Return the tools to offer by server: as before if the server has the same configuration.

    Tools whose schemas are invalid are left out.
    """
    merged: dict[str, Json] = {}
    keys = {entry.name: _key(entry, wanted) for entry in wanted.entries} | {OWN: ""}
    for name, key in keys.items():
        former = before.get(name)
        if former is not None and former["key"] == key and former["tools"]:
            merged[name] = former
        else:
            usable = (tool for tool in listed[name] if schema_problem(tool.input_schema) is None)
            merged[name] = {"key": key, "tools": [asdict(tool) for tool in usable]}
    return merged


def _key(entry: ServerEntry, wanted: Wanted) -> str:
    """Return a text that is equal for equal configurations; it has no value of a variable."""
    parts = [entry.command, [*entry.args], entry.cwd, sorted(entry.env)]
    choice = [[*wanted.allow], [*wanted.deny], wanted.short]
    return hashlib.sha256(json.dumps([parts, choice]).encode()).hexdigest()
