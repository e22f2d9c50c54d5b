"""`efrit-budget elisp-path`: print the folder of the Emacs package."""

import argparse
from pathlib import Path

from efrit_budget.errors import EfritError

NAME = "elisp-path"
HELP = "Print the folder of the Emacs package that came with this program."
EXAMPLES = """  efrit-budget elisp-path

The file efrit-autoloads.el there has all commands. The line for an init file:

  (load (expand-file-name "efrit-autoloads" (car (process-lines "efrit-budget" "elisp-path"))))
"""

PACKAGE = Path(__file__).resolve().parents[1]


def configure(_parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def run(_arguments: argparse.Namespace) -> int:
    """Print the folder in this installation, or in the checkout that it was made from."""
    print(lisp_folder())
    return 0


def lisp_folder() -> Path:
    """Return the folder of the Lisp files; raise if they were not installed."""
    for folder in (PACKAGE / "elisp", PACKAGE.parent / "elisp"):
        if (folder / "efrit.el").is_file():
            return folder
    raise EfritError(
        "the Emacs package was not installed with this program; install the wheel of efrit-budget, "
        "or the Emacs package itself"
    )
