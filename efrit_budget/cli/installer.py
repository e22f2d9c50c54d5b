"""`efrit-budget installer`: make a file that installs this program on another machine."""

import argparse
from pathlib import Path

from efrit_budget.cli.output import complain

NAME = "installer"
HELP = "Make a file that installs this program on another machine, for the same or another Python."
EXAMPLES = """  efrit-budget installer install.pyz

Copy the file over, and run it there: python3 install.pyz. If that is another kind of machine, add
what it is, as in --python 3.13 --platform linux-aarch64 --libc glibc-2.41.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the file and the facts of the machine."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the file to write")
    parser.add_argument("--python", metavar="X.Y", help="the version of Python there")
    parser.add_argument("--platform", metavar="NAME", help="sysconfig.get_platform() there")
    parser.add_argument("--libc", metavar="NAME", help="the C library there, such as glibc-2.36")


def run(arguments: argparse.Namespace) -> int:
    """Write the installer, and say what it has to download."""
    from efrit_budget.installer.bundle import write_installer
    from efrit_budget.installer.machine import Machine

    here = Machine.here()
    machine = Machine(
        arguments.python or here.python,
        arguments.platform or here.platform,
        here.libc if arguments.libc is None else arguments.libc,
    )
    missing = write_installer(arguments.file, machine)
    if missing:
        complain(f"not in {arguments.file}, to be downloaded there: {', '.join(missing)}")
    return 0
