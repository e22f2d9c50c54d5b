"""Read settings from TOML files, the environment and overrides."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from efrit_budget.errors import EfritError
from efrit_budget.settings.model import known_settings, path_settings

_PREFIX: Final = "EFRIT_BUDGET_"
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")

FOLDER_LISTS: Final = ("tools.path", "tools.extra_roots")


class SettingsError(EfritError):
    """A setting cannot be used; the message says where and why."""

    code = -32006


@dataclass(frozen=True, slots=True)
class Given:
    """A value for a setting and its source."""

    key: str
    value: Any
    origin: str


def parse_toml(raw: bytes, path: Path) -> dict[str, Any]:
    """Parse a TOML file's bytes; the error names the file and the line."""
    import tomllib  # noqa: PLC0415 - most processes start without a file to parse

    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}: line {line}: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        problem, line_number = _with_location(str(error), raw)
        raise SettingsError(f"{path}: line {line_number}: not TOML: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f"{path}: line 1 or later: a value is too large or nested too deeply"
        ) from error


def _with_location(message: str, raw: bytes) -> tuple[str, int]:
    match = re.search(r"^(.*) \(at line (\d+), column \d+\)$", message, re.DOTALL)
    if match:
        return match[1], int(match[2])
    return message.removesuffix(" (at end of document)"), raw.count(b"\n") + 1


def from_file(path: Path) -> list[Given]:
    """Return the settings in the person's file, if any; relative paths start at its folder."""
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    return [_with_paths(value, path.parent) for value in _by_key(parse_toml(raw, path), str(path))]


def from_environment(environ: Mapping[str, str]) -> list[Given]:
    """Return the settings in `EFRIT_BUDGET_<GROUP>__<FIELD>` variables."""
    found = []
    for variable, text in sorted(environ.items()):
        group, separator, name = variable.removeprefix(_PREFIX).partition("__")
        if variable.startswith(_PREFIX) and separator and text:
            key = f"{group}.{name}".lower()
            origin = f"environment {variable}"
            _require_known(key, origin)
            value = text if key in path_settings() else _parse_value(text)
            found.append(_with_paths(Given(key, value, origin), Path.cwd()))
    return found


def misspelt_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable that has one underscore where two are needed."""
    right = {variable_of(key): key for key in known_settings()}
    single = {variable.replace("__", "_"): variable for variable in right}
    for variable in sorted(environ):
        if variable in single:
            yield f"environment {variable} is not read; the name is {single[variable]}"


def variable_of(key: str) -> str:
    """Return the name of the environment variable that sets `key`."""
    return _PREFIX + key.upper().replace(".", "__")


def from_mapping(overrides: Mapping[str, object], origin: str) -> list[Given]:
    """Return the settings in `overrides`: dotted keys or nested tables; leave out None values."""
    dotted = {key: value for key, value in overrides.items() if "." in key}
    tables = {key: value for key, value in overrides.items() if "." not in key}
    for key in dotted:
        _require_known(key, origin)
    found = [Given(key, value, origin) for key, value in dotted.items()]
    found += _by_key(tables, origin)
    return [_with_paths(setting, Path.cwd()) for setting in found if setting.value is not None]


def _by_key(tables: Mapping[str, Any], origin: str) -> list[Given]:
    found = []
    for group, table in tables.items():
        if not isinstance(table, Mapping):
            if any(key.startswith(f"{group}.") for key in known_settings()):
                raise SettingsError(f"{origin}: {group}: a table of settings is needed")
            raise SettingsError(unknown_setting(group, origin))
        for name, value in table.items():
            key = f"{group}.{name}"
            _require_known(key, origin)
            found.append(Given(key, value, origin))
    return found


def _require_known(key: str, origin: str) -> None:
    if key not in known_settings():
        raise SettingsError(unknown_setting(key, origin), data={"fields": [{"field": key}]})


def unknown_setting(key: str, origin: str) -> str:
    """Return the message for an unknown setting, with the nearest known one."""
    import difflib  # noqa: PLC0415 - only a mistake needs it

    known = list(known_settings())
    by_name = {name.rpartition(".")[2]: name for name in known}
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    near = near or difflib.get_close_matches(key, list(by_name), n=1)
    name = key if all(_BARE_KEY.fullmatch(part) for part in key.split(".")) else excerpt(key)
    hint = f"; the nearest is {by_name.get(near[0], near[0])}" if near else ""
    return f"{origin}: there is no setting {name}{hint}"


def _parse_value(text: str) -> Any:
    import tomllib  # noqa: PLC0415 - most processes start without a variable to parse

    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if len(document) == 1 else text


def _with_paths(given: Given, base: Path) -> Given:
    if given.key in path_settings() and isinstance(given.value, str):
        return Given(given.key, _make_absolute(given.value, base, given), given.origin)
    if given.key in FOLDER_LISTS and isinstance(given.value, list | tuple):
        paths = tuple(
            _make_absolute(part, base, given) if isinstance(part, str) else part
            for part in given.value
        )
        return Given(given.key, paths, given.origin)
    return given


def _make_absolute(text: str, base: Path, given: Given) -> Path:
    if not text or "\0" in text:
        raise SettingsError(f"{given.origin}: {given.key}: {excerpt(text)} is not a path")
    try:
        return (base / Path(text).expanduser()).absolute()
    except RuntimeError as error:
        raise SettingsError(f"{given.origin}: {given.key}: {error}") from error


def excerpt(value: object) -> str:
    """Return a value in ASCII and at most 60 characters, for a message of one line."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
