"""The settings with defaults, bounds and descriptions."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic.fields import FieldInfo

from efrit_budget.budget.tiers import DEFAULT_TOTAL, AtLeastNone, Limits, Tier, tier_sizes
from efrit_budget.errors import InvalidParamsError
from efrit_budget.project.secrets import PATTERNS
from efrit_budget.project.specs import Specs
from efrit_budget.settings import places

_MIB: Final = 2**20


class _Group(BaseModel):
    # Building is deferred because it would be done for each group and again for the whole:
    # it is a measurable part of a process's start.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class WireSettings(_Group):
    """Settings of the connection to the client."""

    max_message_bytes: int = Field(
        default=64 * _MIB,
        ge=1024,
        le=2**31 - 1,
        description="The largest message that is read; a larger one is refused.",
    )


class StorageSettings(_Group):
    """Settings of the database."""

    database: Path = Field(
        default_factory=places.database_file,
        strict=False,
        description="The database file.",
    )
    busy_timeout_ms: int = Field(
        default=10_000,
        ge=0,
        le=600_000,
        description="How long a write waits for another sidecar's write, in milliseconds.",
    )


class LogSettings(_Group):
    """Settings of the log file."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe message that is logged."
    )
    max_bytes: int = Field(
        default=5 * _MIB,
        ge=64 * 1024,
        le=1024 * _MIB,
        description="The size at which the log file is put aside and a new one begun.",
    )
    file: Path = Field(default_factory=places.log_file, strict=False, description="The log file.")


class ToolSettings(_Group):
    """Settings of the tools that a model is offered."""

    path: tuple[Path, ...] = Field(
        default=(), strict=False, description="Folders with the person's own tool files."
    )
    prefer_system_rg: bool = Field(
        default=False,
        description="Search with the rg on PATH, when it is at least version 13, "
        "rather than with the one that was installed with the sidecar.",
    )
    extra_roots: tuple[Path, ...] = Field(
        default=(),
        strict=False,
        description="Folders outside the project that tools may read as well.",
    )
    secret_files: tuple[str, ...] = Field(
        default=PATTERNS,
        strict=False,
        description="Files that are read only when the person agrees, and not searched: names, "
        "or ends of paths, as in a .gitignore; the last that matches decides, and one behind a "
        "! is none.",
    )
    hide_processes: bool = Field(
        default=True,
        description="Keep the commands of run_command from looking into other processes, where "
        "keys could be: their environment, memory and open files. It takes Landlock (Linux 5.19). "
        "In such a command mount fails, and so does sudo, unless you are root.",
    )
    deny: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Names of tools that are never offered.",
    )


class _Budget(_Group):
    """The limits of a session's window, in tokens."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        budget = vars(self)
        try:
            tier_sizes(budget["total"], {tier: budget[tier] for tier in Tier})
        except InvalidParamsError as error:
            raise ValueError(error.message.removeprefix("limits: ")) from error
        if budget["floor"] > budget["per_tool_default"]:
            raise ValueError(
                f"floor {budget['floor']:,} is above "
                f"per_tool_default {budget['per_tool_default']:,}"
            )
        return self


def _members_of(declared: type) -> Iterator[tuple[str, Any]]:
    """Yield each field of a dataclass: its name, and its type and default for `create_model`."""
    kinds = get_type_hints(declared, include_extras=True)
    for each in fields(declared):
        if each.default_factory is MISSING:
            yield each.name, (kinds[each.name], each.default)
        else:
            yield each.name, (kinds[each.name], Field(default_factory=each.default_factory))


def _budget_members() -> Iterator[tuple[str, Any]]:
    """Yield the fields of `Limits` for `create_model`, with one per tier in place of `tiers`."""
    for name, member in _members_of(Limits):
        if name != "tiers":
            yield name, member
            continue
        for tier in Tier:
            share = f"{tier.default:,} of {DEFAULT_TOTAL:,}"
            meaning = f"{tier.holds}; scaled with the total ({share}) unless set."
            yield tier, (AtLeastNone | None, Field(default=None, description=meaning))


if TYPE_CHECKING:
    BudgetSettings = Limits
    SpecSettings = Specs
else:
    BudgetSettings = create_model(
        "BudgetSettings", __base__=_Budget, __doc__=_Budget.__doc__, **dict(_budget_members())
    )
    SpecSettings = create_model(
        "SpecSettings",
        __base__=_Group,
        __doc__="The places of specifications, relative to a project's root.",
        **dict(_members_of(Specs)),
    )


class MemorySettings(_Group):
    """Settings of the memory across sessions."""

    half_life_days: float = Field(
        default=30.0,
        gt=0,
        le=36_500,
        strict=False,
        allow_inf_nan=False,
        description="Days after which how recent a memory is counts half as much in its rank.",
    )


class RetentionSettings(_Group):
    """The retention of unused sessions."""

    days: int = Field(
        default=30,
        ge=0,
        le=36_500,
        description="Days without use after which a session loses its contents; with 0 none does "
        "because of its age. One that you did not close goes only after a warning; one that you "
        "renamed, or pinned a result in, stays.",
    )
    max_bytes: int = Field(
        default=1024 * _MIB,
        ge=_MIB,
        le=2**60,
        description="Stored bytes above which the least recently used sessions lose their "
        "contents before their time, also with `days` 0, but for those renamed or with a pin.",
    )


class Settings(_Group):
    """All settings; `load` takes them from every source."""

    wire: WireSettings = Field(default_factory=WireSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    specs: SpecSettings = Field(default_factory=SpecSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)

    def value(self, key: str) -> Any:
        """Return the value of a dotted key such as `budget.total`."""
        group, _, name = key.partition(".")
        return getattr(getattr(self, group), name)


@cache
def known_settings() -> Mapping[str, FieldInfo]:
    """Return the pydantic field of every setting, by the setting's dotted key."""
    return {
        f"{group}.{name}": field
        for group, group_field in Settings.model_fields.items()
        if isinstance(group_field.annotation, type) and issubclass(group_field.annotation, _Group)
        for name, field in group_field.annotation.model_fields.items()
    }


@cache
def path_settings() -> frozenset[str]:
    """Return the keys whose value is one path."""
    return frozenset(key for key, field in known_settings().items() if field.annotation is Path)
