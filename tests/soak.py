"""How much the random and the long tests do: a little in `make test`, much in `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LENGTH = float(os.environ.get("EFRIT_SOAK") or 0)
"""How many times its usual length the soak is; 0 in `make test`."""
ANEW = bool(os.environ.get("EFRIT_SOAK_ANEW"))
"""Whether random tests try other examples than the last time."""


def amount(few: int, many: int) -> int:
    """Return `few` in `make test`, and `many` times the length of the soak in `make soak`."""
    return max(few, round(many * LENGTH)) if LENGTH else few


def stride(wide: int) -> int:
    """Return the step between the cases to try: `wide` in `make test`, each one in `make soak`."""
    return 1 if LENGTH else wide


def load_profile() -> None:
    """Have random tests try the same examples each time, or others where they are to be new.

    Nothing is held against an example that takes long: the machine may be busy.
    """
    settings.register_profile(
        "efrit",
        max_examples=amount(15, 400),
        derandomize=not ANEW,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("efrit")
