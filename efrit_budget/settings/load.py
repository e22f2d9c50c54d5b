"""Merge all sources into one validated `Settings`."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from efrit_budget.settings import places
from efrit_budget.settings.model import Settings, known_settings
from efrit_budget.settings.project_file import ProjectFile, read_project_file
from efrit_budget.settings.sources import (
    Given,
    SettingsError,
    excerpt,
    from_environment,
    from_file,
    from_mapping,
    misspelt_variables,
)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in effect, their sources, and warnings."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def load(
    *,
    project_root: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    override_origin: str = "client",
) -> LoadedSettings:
    """Return the settings of all sources; raise for a mistake, except in the project's file."""
    environ = os.environ if environ is None else environ
    own = [
        Given("storage.database", places.database_file(environ), "default"),
        Given("log.file", places.log_file(environ), "default"),
        *from_file(places.config_file(environ)),
    ]
    above = [*from_environment(environ), *from_mapping(overrides or {}, override_origin)]
    values = {value.key: value for value in (*own, *above)}
    warnings = tuple(misspelt_variables(environ))
    if project_root is not None:
        path = project_root / places.PROJECT_FILE_NAME
        project = read_project_file(path, _validate(values.values()))
        _narrow(values, project, outranked_by={value.key for value in above})
        warnings += project.warnings
    origins = {key: values[key].origin if key in values else "default" for key in known_settings()}
    return LoadedSettings(_validate(values.values()), origins, warnings)


def _narrow(values: dict[str, Given], project: ProjectFile, outranked_by: set[str]) -> None:
    """Apply the project's settings to `values`, except outranked ones; refuse invalid ones."""
    for value in project.narrowed:
        if value.key in outranked_by:
            continue
        try:
            _validate((values | {value.key: value}).values())
        except SettingsError as error:
            project.refuse(f"{value.key} is not taken: {error.message}")
        else:
            values[value.key] = value


def _validate(values: Iterable[Given]) -> Settings:
    tables: dict[str, dict[str, Any]] = {group: {} for group in Settings.model_fields}
    origins = {}
    for value in values:
        group, _, name = value.key.partition(".")
        tables[group][name] = value.value
        origins[value.key] = value.origin
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        raise _settings_error(error, origins) from error


def _settings_error(error: ValidationError, origins: Mapping[str, str]) -> SettingsError:
    details = error.errors(include_url=False)
    fields = [{"field": _key(one), "problem": _problem(one)} for one in details]
    lines = []
    for one in details:
        given = f" = {excerpt(one['input'])}" if len(one["loc"]) > 1 else ""
        lines.append(f"{_origin(_key(one), origins)}: {_key(one)}{given}: {_problem(one)}")
    return SettingsError("; ".join(lines), data={"fields": fields})


def _key(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"])


def _origin(key: str, origins: Mapping[str, str]) -> str:
    of_key = origins.get(".".join(key.split(".")[:2]))
    of_group = [origin for name, origin in origins.items() if name.startswith(f"{key}.")]
    return of_key or " and ".join(dict.fromkeys(of_group)) or "default"


def _problem(detail: ErrorDetails) -> str:
    problem = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return problem.replace("valid tuple", "valid list")
