"""The other servers that the person names, on the command line or in a `.mcp.json`."""

import hashlib
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from efrit_budget.errors import EfritError, invalid_params

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""Matches `${NAME}` and `${NAME:-default}`."""
MOST_BYTES = 2**20
"""The bytes of a `.mcp.json` that are read."""


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

    model_config = ConfigDict(extra="ignore", defer_build=True)

    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None

    def texts(self) -> Iterator[str]:
        """Yield the texts in which variables of the environment are put in."""
        yield from (self.command, *self.args, *self.env.values(), self.cwd or "")


class _Content(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)

    mcpServers: dict[str, _Entry]  # noqa: N815  the name in the file


@dataclass(frozen=True)
class ServersFile:
    """A `.mcp.json` as it was read."""

    file: Path
    digest: str
    """The SHA-256 of its content, in hexadecimal."""
    servers: Mapping[str, _Entry]
    left_out: Sequence[str]
    """The names of the servers that no command starts."""

    def entries(self, environment: Mapping[str, str]) -> list[ServerEntry]:
        """Return the servers with variables of the environment put in; raise if one is not set."""
        return [_read_entry(self.file, *named, environment) for named in self.servers.items()]

    def variables(self) -> list[str]:
        """Return the names of the variables that the file names, sorted."""
        texts = (text for entry in self.servers.values() for text in entry.texts())
        return sorted({match[1] for text in texts for match in VARIABLE.finditer(text)})

    def lines(self) -> list[tuple[str, str]]:
        """Return each server's name and how it is started, as the file has it."""
        return [(name, _started_by(entry)) for name, entry in self.servers.items()]


def _started_by(entry: _Entry) -> str:
    """Return the command of a server as a shell would take it, with variables and folder."""
    folder = [] if entry.cwd is None else ["cd", shlex.quote(entry.cwd), "&&"]
    variables = [f"{name}={shlex.quote(value)}" for name, value in entry.env.items()]
    return " ".join([*folder, *variables, shlex.join([entry.command, *entry.args])])


def entry_of(text: str) -> ServerEntry:
    """Return the server that `NAME=COMMAND` names; raise if it is not of this form."""
    name, equals, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"{text}: {error}") from error
    if not equals or not words:
        raise ConfigurationError(f"{text!r} is not NAME=COMMAND, such as files='npx -y server'")
    return ServerEntry(check_name(name), words[0], words[1:])


def read_servers(file: Path) -> ServersFile:
    """Return the servers of a `.mcp.json`; raise if it cannot be read or has another form."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise ConfigurationError(f"{file} is no file")
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES)
        found = _Content.model_validate_json(content)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {invalid_params(error.errors()).message}") from error
    servers = found.mcpServers
    started = {
        check_name(name, f"{file}: "): each for name, each in servers.items() if each.command
    }
    left_out = [name for name in servers if name not in started]
    return ServersFile(file, hashlib.sha256(content).hexdigest(), started, left_out)


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
        name,
        filled_in(entry.command),
        [filled_in(argument) for argument in entry.args],
        {key: filled_in(value) for key, value in entry.env.items()},
        None if entry.cwd is None else filled_in(entry.cwd),
    )


def check_name(name: str, where: str = "") -> str:
    """Return the name of a server; raise if it cannot be one, with `where` before the problem."""
    if not SERVER_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{where}{name!r} is no name for a server: up to 32 letters, digits, - and _ can be"
        )
    return name
