"""The command `efrit-budget`, also `python -m efrit_budget`."""

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    _fill_standard_descriptors()
    # Looking for pydantic's plugins reads the metadata of every installed package, which is a
    # measurable part of a start; this package has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from efrit_budget.cli.parser import run  # noqa: PLC0415 - Ctrl-C during imports

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130


def _fill_standard_descriptors() -> None:
    """Open the null device as each standard stream that is closed.

    Otherwise a library's file could take the number of a closed stream, and what is written to
    standard error would go into that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            os.set_inheritable(descriptor, True)


if __name__ == "__main__":
    sys.exit(main())
