"""The length of the random and the long tests: short in `make test`, long in `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LENGTH = float(os.environ.get("EFRIT_SOAK") or 0)
"""The factor by which the soak is longer than usual; 0 in `make test`."""
ANEW = bool(os.environ.get("EFRIT_SOAK_ANEW"))
"""True if random tests try other examples than the last time."""


def amount(few: int, many: int) -> int:
    """Return `few` in `make test`, and `many` times the length of the soak in `make soak`."""
    return max(few, round(many * LENGTH)) if LENGTH else few


def stride(wide: int) -> int:
    """Return the step between the cases to try: `wide` in `make test`, each one in `make soak`."""
    return 1 if LENGTH else wide


def load_profile() -> None:
    """Have random tests try the same examples each time, or new ones if `ANEW` is set.

    There is no time limit for an example, because the machine may be busy.
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
