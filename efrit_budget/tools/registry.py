"""Find the tools of the catalog and the person's own."""

import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from pydantic import BaseModel

from efrit_budget.errors import EfritError, JsonObject, ToolNotFoundError
from efrit_budget.tools import catalog
from efrit_budget.tools.base import Policy, Resumable, Tool

TOOL_MEMBERS = (*Tool.__annotations__, "run", "compress")
NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""The tool names that the Messages API accepts."""


class ToolDefinitionError(EfritError):
    """A tool's file is invalid."""


class Registry:
    """The tools, sorted by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if not NAME_PATTERN.fullmatch(tool.name):
                raise ToolDefinitionError(f"{tool.name!r} is no name for a tool")
            if tool.name in self._tools:
                raise ToolDefinitionError(f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    def named(self, name: str) -> Tool:
        """Return the tool with this name; if there is none, raise an error that lists all names."""
        if name not in self._tools:
            known = ", ".join(sorted(self._tools))
            raise ToolNotFoundError(f"no tool {name!r}; there are: {known}", data={"name": name})
        return self._tools[name]

    def __contains__(self, name: str) -> bool:
        """Return whether there is a tool with this name."""
        return name in self._tools

    def resumable(self, name: str) -> Resumable:
        """Return the tool with this name; raise if it cannot continue its results."""
        tool: object = self.named(name)
        if isinstance(tool, Resumable):
            return tool
        raise ToolNotFoundError(f"the tool {name} goes on no more; call it anew")

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over the tools by name."""
        return iter(tool for _, tool in sorted(self._tools.items()))


def discover(folders: Sequence[Path] = (), *, deny: Sequence[str] = ()) -> Registry:
    """Return the tools of the catalog and of `folders`, without denied ones."""
    names = [module.name for module in pkgutil.iter_modules(catalog.__path__)]
    modules = [importlib.import_module(f"{catalog.__name__}.{name}") for name in names]
    modules += [_load(file) for file in _files(folders)]
    tools = [_tool_of(module) for module in modules]
    return Registry(tool for tool in tools if tool.name not in deny)


@cache
def schema(arguments: type[BaseModel]) -> JsonObject:
    """Return the JSON schema of a tool's arguments, shortened to save tokens."""
    found = arguments.model_json_schema()
    found.pop("title", None)
    found.pop("description", None)
    properties = found.get("properties", {})
    found["properties"] = {name: _compact_property(member) for name, member in properties.items()}
    return found


def _compact_property(member: JsonObject) -> JsonObject:
    """Return the schema of an argument without its title and without null as a type or default."""
    plain = {key: value for key, value in member.items() if key != "title"}
    if plain.get("default", ()) is None:
        del plain["default"]
        kinds = [kind for kind in plain.pop("anyOf", []) if kind != {"type": "null"}]
        plain = {**kinds[0], **plain} if len(kinds) == 1 else {**plain, "anyOf": kinds}
    return plain


def entry(tool: Tool) -> JsonObject:
    """Return a tool as `tools/list` shows it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema(tool.arguments),
        "runs_in": "sidecar",
        "policy": str(Policy(tool.policy)),
        "has_effects": tool.has_effects,
    }


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise ToolDefinitionError(f"tools.path: {folder} is not a folder")
        yield from sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"efrit_tool_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ToolDefinitionError(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pydantic resolves annotations there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ToolDefinitionError(f"{file} cannot be loaded: {error!r}") from error
    return module


def _tool_of(module: ModuleType) -> Tool:
    tool: Tool | None = getattr(module, "TOOL", None)
    if tool is None:
        raise ToolDefinitionError(f"{module.__file__} defines no TOOL")
    missing = [name for name in TOOL_MEMBERS if not hasattr(tool, name)]
    if missing:
        raise ToolDefinitionError(f"{module.__file__}: TOOL has no {', '.join(missing)}")
    if tool.policy not in list(Policy):
        known = ", ".join(Policy)
        raise ToolDefinitionError(
            f"{module.__file__}: no policy {tool.policy!r}; there are: {known}"
        )
    return tool
