"""`efrit-budget doctor`: check the installation and say how to fix it."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from efrit_budget.cli.application import loaded_settings
from efrit_budget.cli.arguments import add_json_flag
from efrit_budget.cli.output import print_json, print_table
from efrit_budget.errors import EfritError

if TYPE_CHECKING:
    from efrit_budget.cli.checks.check import Check

NAME = "doctor"
HELP = "Check the installation, and say what to fix."
EXAMPLES = """  efrit-budget doctor
  efrit-budget doctor --db /tmp/other.sqlite3
  efrit-budget doctor --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    add_json_flag(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print every check; return 1 if a check failed without which the sidecar cannot work."""
    checks = [*_check_machine(), *_check_person(arguments)]
    broken = any(check.breaks for check in checks)
    if arguments.as_json:
        print_json({"ok": not broken, "checks": [one.as_dict() for one in checks]}, compact=True)
    else:
        print_table([("ok" if one.ok else "problem", one.name, _finding(one)) for one in checks])
    return 1 if broken else 0


def _check_machine() -> "Iterator[Check]":
    from efrit_budget.cli.checks import programs

    yield programs.check_python()
    yield from programs.check_packages()
    yield from programs.check_rg()
    yield from programs.check_listed()
    yield programs.check_confinement()


def _check_person(arguments: argparse.Namespace) -> "Iterator[Check]":
    from efrit_budget.cli.checks.check import Check

    try:
        from efrit_budget.settings import places
    except ImportError as error:
        yield Check("settings", f"not read: {error}", "install the packages named above")
        return
    database, log = places.database_file(), places.log_file()
    try:
        settings = loaded_settings(arguments).settings
        database, log = settings.storage.database, settings.log.file
        yield Check("settings", f"{places.config_file()}")
    except EfritError as error:
        yield Check("settings", error.message, "correct it there")
    except ImportError as error:
        yield Check("settings", f"not read: {error}", "install the packages named above")
    from efrit_budget.cli.checks import files

    yield from files.check_database(database)
    yield files.check_folder("state folder", database.parent)
    yield files.check_folder("config folder", places.config_folder(), required=False)
    yield files.check_folder("log folder", log.parent)
    yield files.check_disk(database.parent)


def _finding(check: "Check") -> str:
    """Return the text of a check: what was found, and the fix if there is a problem."""
    return check.found if check.ok else f"{check.found} -> {check.fix}"
