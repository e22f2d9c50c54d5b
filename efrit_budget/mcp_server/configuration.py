"""The other servers that the person names, on the command line or in a `.mcp.json`."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from efrit_budget.errors import EfritError, invalid_params

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""Matches `${NAME}` and `${NAME:-default}`."""


class ConfigurationError(EfritError):
    """The other servers are not named as they should be."""


@dataclass(frozen=True)
class ServerEntry:
    """How another server is started; of our environment it gets only what stands here."""

    name: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None


class _Entry(BaseModel):
    """A member of `mcpServers`; what other clients have there besides is ignored."""

    model_config = ConfigDict(extra="ignore")

    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    mcpServers: dict[str, _Entry]  # noqa: N815  the name in the file


def entry_of(text: str) -> ServerEntry:
    """Return the server that `NAME=COMMAND` names; raise if it is not of this form."""
    name, equals, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"{text}: {error}") from error
    if not equals or not words:
        raise ConfigurationError(f"{text!r} is not NAME=COMMAND, such as files='npx -y server'")
    return ServerEntry(_checked_name(name), words[0], words[1:])


def entries_in(file: Path, environment: Mapping[str, str]) -> tuple[list[ServerEntry], list[str]]:
    """Return the servers of a `.mcp.json`, and the names of those that no command starts.

    Variables of the environment are put in where the file names them.
    """
    try:
        found = _File.model_validate_json(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {invalid_params(error.errors()).message}") from error
    started = {name: entry for name, entry in found.mcpServers.items() if entry.command}
    entries = [_read_entry(file, *named, environment) for named in started.items()]
    return entries, [name for name in found.mcpServers if name not in started]


def check_names(entries: Sequence[ServerEntry]) -> None:
    """Raise if two servers have the same name."""
    names = [entry.name for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"two servers are named {twice}; give one another name")


def _read_entry(
    file: Path, name: str, entry: _Entry, environment: Mapping[str, str]
) -> ServerEntry:
    def put_in(match: re.Match[str]) -> str:
        value: str | None = environment.get(match[1], match[2])
        if value is None:
            raise ConfigurationError(f"{file}: {name}: the variable {match[1]} is not set")
        return value

    def filled_in(text: str) -> str:
        return VARIABLE.sub(put_in, text)

    return ServerEntry(
        _checked_name(name),
        filled_in(entry.command),
        [filled_in(argument) for argument in entry.args],
        {key: filled_in(value) for key, value in entry.env.items()},
        None if entry.cwd is None else filled_in(entry.cwd),
    )


def _checked_name(name: Any) -> str:
    if not SERVER_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is no name for a server: up to 32 letters, digits, - and _ can be"
        )
    return str(name)
