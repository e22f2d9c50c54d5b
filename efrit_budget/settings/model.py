"""The settings with defaults, bounds and descriptions."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from efrit_budget.budget.tiers import (
    DEFAULT_FLOOR,
    DEFAULT_LOW_WATER,
    DEFAULT_PER_TOOL,
    DEFAULT_TOTAL,
    DEFAULT_WARNING,
    Tier,
    tier_sizes,
)
from efrit_budget.errors import InvalidParamsError
from efrit_budget.project.secrets import PATTERNS
from efrit_budget.project.specs import CHANGES, CONVENTIONS, FOLDERS
from efrit_budget.settings import places

_MIB: Final = 2**20
_MAX_TOKENS: Final = 10_000_000
_PROJECT_MAY_NARROW: Final[dict[str, Any]] = {"project_may_narrow": True}

Tokens = Annotated[int, Field(ge=1, le=_MAX_TOKENS)]
TierTokens = Annotated[int, Field(ge=0, le=_MAX_TOKENS)]


class _Group(BaseModel):
    # Building is deferred because it would be done for each group and again for the whole:
    # it is a measurable part of a process's start.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class WireSettings(_Group):
    """The connection to the client."""

    max_message_bytes: int = Field(
        default=64 * _MIB,
        ge=1024,
        le=2**31 - 1,
        description="The largest message that is read; a larger one is refused.",
    )


class StorageSettings(_Group):
    """The database."""

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
    """The log file."""

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
    """The tools a model is offered."""

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
        json_schema_extra=_PROJECT_MAY_NARROW,
    )


class BudgetSettings(_Group):
    """The limits of a session's window, in tokens."""

    total: int = Field(
        default=DEFAULT_TOTAL,
        ge=1_000,
        le=_MAX_TOKENS,
        description="The whole budget: the prompt and the reserve for the reply.",
        json_schema_extra=_PROJECT_MAY_NARROW,
    )
    system: TierTokens | None = Field(
        default=None,
        description="System prompt and tool schemas; scaled with the total (8,000 of 100,000) "
        "unless set.",
    )
    history: TierTokens | None = Field(
        default=None,
        description="Compressed work log and the model's earlier turns; scaled with the total "
        "(12,000 of 100,000) unless set.",
    )
    tool_results: TierTokens | None = Field(
        default=None,
        description="Results in the window in full; scaled with the total (40,000 of 100,000) "
        "unless set.",
    )
    user_message: TierTokens | None = Field(
        default=None,
        description="The request and its context; scaled with the total (10,000 of 100,000) "
        "unless set.",
    )
    response: TierTokens | None = Field(
        default=None,
        description="The reserve for the reply, never lent out; scaled with the total "
        "(30,000 of 100,000) unless set.",
    )
    per_tool_default: Tokens = Field(
        default=DEFAULT_PER_TOOL,
        description="The most that one tool call may deliver.",
        json_schema_extra=_PROJECT_MAY_NARROW,
    )
    per_tool: Mapping[str, Tokens] = Field(
        default_factory=dict,
        description="The same for single tools, by name.",
        json_schema_extra=_PROJECT_MAY_NARROW,
    )
    floor: Tokens = Field(
        default=DEFAULT_FLOOR,
        description="What a call is granted even when the window is under pressure.",
    )
    low_water: float = Field(
        default=DEFAULT_LOW_WATER,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="The share of their tier that full results keep after a compaction.",
    )
    warning_threshold: TierTokens = Field(
        default=DEFAULT_WARNING,
        description="Remaining tokens below which the model is warned; at most a fifth of the "
        "total counts.",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        try:
            tier_sizes(self.total, {tier: getattr(self, tier) for tier in Tier})
        except InvalidParamsError as error:
            raise ValueError(error.message.removeprefix("limits: ")) from error
        if self.floor > self.per_tool_default:
            raise ValueError(
                f"floor {self.floor:,} is above per_tool_default {self.per_tool_default:,}"
            )
        return self


class SpecSettings(_Group):
    """The places of specifications, relative to a project's root."""

    folders: tuple[str, ...] = Field(
        default=FOLDERS,
        strict=False,
        description="Folders with documents: `sdd_get_context` and `sdd_context_check` read them.",
    )
    conventions: tuple[str, ...] = Field(
        default=CONVENTIONS, strict=False, description="Files with the project's conventions."
    )
    changes: str = Field(
        default=CHANGES, description="The folder that holds a folder for each change."
    )


class MemorySettings(_Group):
    """Memory across sessions."""

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
        description="Days without use after which a session loses its contents; 0 keeps all for "
        "good. One that you did not close goes only after a warning; one that you renamed, or "
        "pinned a result in, stays.",
    )
    max_bytes: int = Field(
        default=1024 * _MIB,
        ge=_MIB,
        le=2**60,
        description="Stored bytes above which the least recently used of such sessions go before "
        "their time.",
    )


class Settings(_Group):
    """All settings; `load` fills them from every source."""

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
    """Return every setting by its dotted key."""
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


@cache
def settings_a_project_may_narrow() -> frozenset[str]:
    """Return the keys that a project's own file may make stricter."""
    return frozenset(
        key
        for key, field in known_settings().items()
        if field.json_schema_extra == _PROJECT_MAY_NARROW
    )
