"""The command `efrit-budget`, also `python -m efrit_budget`."""

import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    # Looking for pydantic's plugins reads the metadata of every installed package, which is a
    # measurable part of a start; this package has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from efrit_budget.cli.process import run  # noqa: PLC0415 - Ctrl-C during imports

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
