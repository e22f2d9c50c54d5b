"""Read a project's `.efrit.toml`, which may only make settings stricter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from efrit_budget.settings.model import Settings, known_settings
from efrit_budget.settings.sources import (
    Given,
    SettingsError,
    excerpt,
    parse_toml,
    unknown_setting,
)

_MAX_BYTES: Final = 64 * 1024
_MAX_WARNINGS: Final = 20
_PLACE: Final = "it belongs in your own config.toml"


@dataclass(slots=True)
class ProjectFile:
    """The settings that a project's file makes stricter, and the file's problems."""

    path: Path
    narrowed: list[Given] = field(default_factory=list)
    _problems: list[str] = field(default_factory=list)

    def refuse(self, problem: str) -> None:
        """Add a problem: the reason why something in the file is ignored."""
        self._problems.append(problem)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The first problems, each with the file's name, and the number of further problems."""
        shown_problems = [f"{self.path}: {problem}" for problem in self._problems[:_MAX_WARNINGS]]
        more = len(self._problems) - _MAX_WARNINGS
        return (*shown_problems, *([f"{self.path}: {more} more problems"] if more > 0 else []))


def read_project_file(path: Path, person: Settings) -> ProjectFile:
    """Return the settings that the file at `path` makes stricter than the person's own."""
    project = ProjectFile(path)
    try:
        tables = parse_toml(_contents(path), path)
    except FileNotFoundError:
        return project
    except OSError as error:
        project.refuse(f"cannot be read: {error.strerror or error}")
        return project
    except SettingsError as error:
        project.refuse(error.message.removeprefix(f"{path}: "))
        return project
    for group, table in tables.items():
        _take_table(project, group, table, person)
    return project


def _contents(path: Path) -> bytes:
    if path.is_symlink():
        raise OSError("it is a symbolic link, which a project's settings may not be")
    if path.exists() and not path.is_file():
        raise OSError("it is not a regular file")
    with path.open("rb") as file:
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise OSError(f"it is larger than {_MAX_BYTES // 1024} KiB")
    return raw


def _take_table(project: ProjectFile, group: str, table: Any, person: Settings) -> None:
    if not isinstance(table, Mapping):
        project.refuse(_is_ignored(group))
        return
    for name, value in table.items():
        key = f"{group}.{name}"
        if key in NARROWED:
            _NARROW[key](project, key, value, person)
        else:
            project.refuse(_is_ignored(key))


def _is_ignored(key: str) -> str:
    if key in known_settings():
        return f"a project may not set {key}; {_PLACE}"
    unknown = unknown_setting(key, "").removeprefix(": ")
    return f"{unknown}; if it is meant as a setting, {_PLACE}"


def _narrow_number(project: ProjectFile, key: str, value: Any, person: Settings) -> None:
    if _is_lower(project, key, value, person.value(key)):
        project.narrowed.append(Given(key, value, str(project.path)))


def _is_lower(project: ProjectFile, key: str, value: Any, ceiling: int) -> bool:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        project.refuse(f"{key} = {excerpt(value)}: a whole number above 0 is needed")
        return False
    if value > ceiling:
        project.refuse(
            f"{key} = {excerpt(value)}: a project may only lower it, and it is {ceiling}; {_PLACE}"
        )
    return value < ceiling


def _narrow_per_tool(project: ProjectFile, key: str, value: Any, person: Settings) -> None:
    if not isinstance(value, Mapping):
        project.refuse(f"{key} = {excerpt(value)}: a table of tool names and numbers is needed")
        return
    own = person.budget.per_tool
    lowered = {
        tool: tokens
        for tool, tokens in value.items()
        if _is_lower(
            project,
            f"{key}.{excerpt(tool)[1:-1]}",
            tokens,
            own.get(tool, person.budget.per_tool_default),
        )
    }
    if lowered:
        project.narrowed.append(Given(key, {**own, **lowered}, str(project.path)))


def _add_denied(project: ProjectFile, key: str, value: Any, person: Settings) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        project.refuse(f"{key} = {excerpt(value)}: a list of tool names is needed")
        return
    own = person.tools.deny
    added = tuple(dict.fromkeys(name for name in value if name not in own))
    if added:
        project.narrowed.append(Given(key, own + added, str(project.path)))


_NARROW: Final[Mapping[str, Callable[[ProjectFile, str, Any, Settings], None]]] = {
    "budget.total": _narrow_number,
    "budget.per_tool_default": _narrow_number,
    "budget.per_tool": _narrow_per_tool,
    "tools.deny": _add_denied,
}
NARROWED: Final = frozenset(_NARROW)
"""The keys of the settings that a project may make stricter."""
