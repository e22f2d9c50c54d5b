"""Session ids that are short and easy to type."""

from __future__ import annotations

import secrets

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without the signs that look alike: i, l, o, 0, 1."""
LENGTH = 5
PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}$"


def new_id() -> str:
    """Return a random id; the store checks that it is unused."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
