"""Session ids: short, and easy to type and to read aloud."""

from __future__ import annotations

import secrets

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without the signs that look alike: i, l, o, 0, 1."""
LENGTH = 5
PATTERN = r"^[a-z0-9][a-z0-9-]{0,31}$"


def new_id() -> str:
    """A random id; the store sees to it that it is not in use."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
