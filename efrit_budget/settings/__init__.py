"""All settings: their bounds, values and sources.

Who only asks where things are (`places`) need not wait for what checks the settings.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from efrit_budget.settings.errors import SettingsError
    from efrit_budget.settings.load import LoadedSettings, load
    from efrit_budget.settings.model import (
        BudgetSettings,
        LogSettings,
        MemorySettings,
        RetentionSettings,
        Settings,
        SpecSettings,
        StorageSettings,
        ToolSettings,
        WireSettings,
    )
else:

    def __getattr__(name: str) -> object:
        """Load everything when the first of it is asked for; `load` is a module's name, too."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from efrit_budget.settings import errors, model  # noqa: PLC0415
        from efrit_budget.settings.load import LoadedSettings, load  # noqa: PLC0415

        found = {**vars(model), **vars(errors), "LoadedSettings": LoadedSettings, "load": load}
        globals().update({each: found[each] for each in __all__})
        return globals()[name]


__all__ = [
    "BudgetSettings",
    "LoadedSettings",
    "LogSettings",
    "MemorySettings",
    "RetentionSettings",
    "Settings",
    "SettingsError",
    "SpecSettings",
    "StorageSettings",
    "ToolSettings",
    "WireSettings",
    "load",
]
