"""The blocks of a request, with their tokens and identifiers, each measured once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from efrit_budget.budget.calibration import Calibration
from efrit_budget.budget.families import family_named
from efrit_budget.budget.models import Model
from efrit_budget.conversation.blocks import block_estimate, readable_texts, valid_json
from efrit_budget.errors import JsonObject
from efrit_budget.results.names import names

RESULT = "tool_result"


@dataclass(frozen=True)
class SentBlock:
    """A block of a request."""

    key: str
    """Equal for blocks with the same content."""
    tokens: int
    names: frozenset[str]
    """The identifiers in the block."""


class Measure:
    """Measures blocks for a model, with its estimate and the factor of its table."""

    def __init__(self, model: Model) -> None:
        self._family = family_named(model.family)
        self._calibration = Calibration(model.factor)
        self._known: dict[str, SentBlock] = {}

    def block(self, block: JsonObject) -> SentBlock:
        """Return a content block, measured."""
        own = {name: value for name, value in block.items() if name != "cache_control"}
        text = valid_json(own)
        key = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        if key not in self._known:
            self._known[key] = SentBlock(key, self._tokens(own), _names(own))
        return self._known[key]

    def text(self, text: str) -> SentBlock:
        """Return a block of text, measured."""
        return self.block({"type": "text", "text": text})

    def result(self, tool_use_id: str, text: str) -> SentBlock:
        """Return a tool's result, measured."""
        content = [{"type": "text", "text": text}]
        return self.block({"type": RESULT, "tool_use_id": tool_use_id, "content": content})

    def _tokens(self, block: JsonObject) -> int:
        if block.get("type") == RESULT:
            parts = sum(block_estimate(part, self._family) for part in block["content"])
            return self._calibration.tokens(parts, results=1)
        if "input_schema" in block:
            schema = valid_json(block, separators=(",", ":"))
            return self._calibration.tokens(self._family.estimate(schema))
        return self._calibration.tokens(block_estimate(block, self._family))


def _names(block: JsonObject) -> frozenset[str]:
    return names("\n".join(readable_texts(block)))
