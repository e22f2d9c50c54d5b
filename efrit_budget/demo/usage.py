"""Count the model's tokens: our estimate times a factor that the client does not know."""

import base64
import binascii
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from efrit_budget.budget.estimate import estimate
from efrit_budget.demo.conversation import plain
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import JsonObject
from efrit_budget.project.images import tokens_of

IMAGE_ELSEWHERE = 1_600
"""The tokens of an image behind a URL, which is not fetched: those of a large one."""

WRAPPER = 10
"""The tokens that a tool use, or a result, costs beside its content."""


@dataclass(frozen=True)
class Meter:
    """Counts the tokens of texts and blocks as the scripted model charges them."""

    factor: float
    thinking: Callable[[JsonObject], int | None]
    """Returns the tokens that a thinking block's signature states, None if it is not ours."""

    def text(self, text: str) -> int:
        """Return a text's tokens."""
        return ceil(estimate(text) * self.factor)

    def use(self, name: str, given: str) -> int:
        """Return the tokens of a tool use with this name and input; ids cost nothing."""
        return WRAPPER + self.text(f"{name} {given}")

    def block(self, block: JsonObject) -> int:
        """Return a block's tokens, including those of the blocks inside."""
        kind = block.get("type")
        if kind == "text":
            return self.text(block["text"])
        if kind == "image":
            return _image_tokens(block["source"])
        if kind == "thinking":
            known = self.thinking(block)
            return self.text(block["thinking"]) if known is None else known
        if kind == "tool_result":
            return WRAPPER + sum(self.block(one) for one in plain(block)["content"])
        if kind == "tool_use":
            return self.use(block["name"], json.dumps(block["input"], ensure_ascii=False))
        return self.text(json.dumps(plain(block), ensure_ascii=False, separators=(",", ":")))


def _image_tokens(source: JsonObject) -> int:
    """Return an image's tokens from the size in its header."""
    if source["type"] != "base64":
        return IMAGE_ELSEWHERE
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - few requests hold an image

    try:
        raw = base64.b64decode(source["data"], validate=True)
        with Image.open(io.BytesIO(raw)) as image:
            return tokens_of(image.size)
    except (binascii.Error, UnidentifiedImageError, OSError) as error:
        raise ApiError("messages: Could not process image") from error
