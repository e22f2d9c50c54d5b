"""`efrit-budget config`: print each setting, its value and its source."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efrit_budget.cli.application import loaded_settings
from efrit_budget.cli.arguments import add_json_flag, folder
from efrit_budget.cli.output import complain, print_json, print_table

if TYPE_CHECKING:
    from efrit_budget.settings.load import LoadedSettings

NAME = "config"
HELP = "Show every setting, its value, and where it came from."
EXAMPLES = """  efrit-budget config
  efrit-budget config budget.total
  efrit-budget config --root ~/src/project     with what that project's .efrit.toml narrows
  efrit-budget config --json
  $EDITOR "$(efrit-budget config --path)"

Sources, each above the one before: defaults, config.toml, the project's .efrit.toml, environment
variables such as EFRIT_BUDGET_BUDGET__TOTAL=80000, flags. A config.toml looks like this:

  [budget]
  total = 80000
  per_tool = { search_content = 4000 }

  [tools]
  deny = ["run_command"]
"""

LIST_SHOWN = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the argument KEY, and flags for the project, the path of config.toml and JSON."""
    parser.add_argument("key", metavar="KEY", nargs="?", help="show this setting only")
    parser.add_argument(
        "--root", metavar="DIR", type=folder, help="the project (default: the current folder)"
    )
    parser.add_argument("--path", action="store_true", help="print the path of config.toml")
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print all settings, one setting, or the path of config.toml."""
    if arguments.path:
        from efrit_budget.settings.places import config_file

        path = str(config_file())
        if arguments.as_json:
            print_json({"path": path}, compact=True)
        else:
            print(path)
        return 0
    loaded = loaded_settings(arguments, project_root=arguments.root or Path.cwd())
    if arguments.key is None:
        return _print_all(loaded, as_json=arguments.as_json)
    return _print_one(loaded, arguments.key, as_json=arguments.as_json)


def _print_all(loaded: "LoadedSettings", *, as_json: bool) -> int:
    if as_json:
        settings = [_describe(loaded, key) for key in loaded.origins]
        print_json({"settings": settings, "warnings": list(loaded.warnings)}, compact=True)
        return 0
    rows = [
        (key, _short(_display_value(loaded, key)), origin) for key, origin in loaded.origins.items()
    ]
    print_table([("SETTING", "VALUE", "FROM"), *rows])
    return 0


def _short(shown: str) -> str:
    """Return the text of a value, with a long list or table cut to its beginning."""
    is_list = shown.startswith(("[", "{"))
    return shown if not is_list or len(shown) <= LIST_SHOWN else f"{shown[:LIST_SHOWN]}…"


def _print_one(loaded: "LoadedSettings", key: str, *, as_json: bool) -> int:
    from efrit_budget.settings.sources import unknown_setting

    if key not in loaded.origins:
        complain(unknown_setting(key, "").removeprefix(": "))
        return 1
    described = _describe(loaded, key)
    if as_json:
        print_json(described, compact=True)
        return 0
    print(f"{key} = {_display_value(loaded, key)}")
    print(f"from: {described['origin']}")
    print(described["description"])
    print(f"environment variable: {described['variable']}")
    return 0


def _describe(loaded: "LoadedSettings", key: str) -> dict[str, Any]:
    from efrit_budget.settings.model import known_settings
    from efrit_budget.settings.sources import variable_of

    return {
        "key": key,
        "value": _plain(loaded.settings.value(key)),
        "origin": loaded.origins[key],
        "variable": variable_of(key),
        "description": known_settings()[key].description,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return dict(value) if hasattr(value, "items") else value


def _display_value(loaded: "LoadedSettings", key: str) -> str:
    value = _plain(loaded.settings.value(key))
    if value is None:
        return "scaled with budget.total"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
