"""Every setting in one place: what it is, its bounds, and where its value came from."""

from efrit_budget.settings.errors import SettingsError
from efrit_budget.settings.load import LoadedSettings, load
from efrit_budget.settings.model import (
    BudgetSettings,
    LogSettings,
    RetentionSettings,
    Settings,
    SpecSettings,
    StorageSettings,
    ToolSettings,
    WireSettings,
)

__all__ = [
    "BudgetSettings",
    "LoadedSettings",
    "LogSettings",
    "RetentionSettings",
    "Settings",
    "SettingsError",
    "SpecSettings",
    "StorageSettings",
    "ToolSettings",
    "WireSettings",
    "load",
]
