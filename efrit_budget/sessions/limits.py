"""Encode a session's limits so that other versions can read them."""

from __future__ import annotations

import json
from dataclasses import fields

from efrit_budget.budget.tiers import Limits, Tier, scaled
from efrit_budget.errors import JsonObject

VERSION = 1
"""Goes up when a member comes to mean something else; a member more or less needs no new one."""


def encode(limits: Limits) -> str:
    """Return the text that is stored."""
    return json.dumps({"version": VERSION, **limits.as_dict()})


def decode(text: str) -> Limits:
    """Return the limits that were stored, by this version or another.

    What is not known here is passed over. A tier that was not known then gets its share of the
    total, as far as the others leave it, and anything else its default.
    """
    stored: JsonObject = json.loads(text)
    known = {field.name: stored[field.name] for field in fields(Limits) if field.name in stored}
    sizes = {tier: stored[tier] for tier in Tier if tier in stored}
    total = known["total"]
    for tier in (tier for tier in Tier if tier not in sizes):
        sizes[tier] = max(0, min(scaled(total, tier), total - sum(sizes.values())))
    return Limits(**known, tiers=sizes)
