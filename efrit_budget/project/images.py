"""Images as a model takes them: in its formats, and no larger than it looks at."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from efrit_budget.errors import EfritError

if TYPE_CHECKING:
    from PIL.Image import Image

READ = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM", "TGA", "PCX")
TAKEN = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
MOST_SENT_BYTES = 3_500_000
"""The API takes 5 MB in base64."""
LONGEST_SIDE = 1568
PIXELS_PER_TOKEN = 750
MOST_TOKENS = 1600
"""What is larger than this or than the longest side, the API itself would make smaller."""
MOST_PIXELS = 50_000_000
QUALITY = 85


class ImageError(EfritError):
    """What cannot be shown as an image."""


@dataclass(frozen=True)
class Shown:
    """An image made ready, beside what it was."""

    kind: str
    size: tuple[int, int]
    shown_size: tuple[int, int]
    media_type: str
    data: bytes

    @property
    def tokens(self) -> int:
        """What the API charges for it."""
        return tokens_of(self.shown_size)

    @property
    def digest(self) -> str:
        """Tells the image from others."""
        return hashlib.sha256(self.data).hexdigest()[:12]

    def block(self) -> dict[str, object]:
        """The API's block."""
        encoded = base64.b64encode(self.data).decode()
        source = {"type": "base64", "media_type": self.media_type, "data": encoded}
        return {"type": "image", "source": source}


def tokens_of(size: tuple[int, int]) -> int:
    """What an image of that size costs."""
    return math.ceil(size[0] * size[1] / PIXELS_PER_TOKEN)


def fitted(size: tuple[int, int], most_tokens: int) -> tuple[int, int]:
    """The largest size of the same shape that the API takes and that costs no more."""
    width, height = size
    pixels = min(most_tokens, MOST_TOKENS) * PIXELS_PER_TOKEN
    scale = min(1.0, LONGEST_SIDE / max(size), math.sqrt(pixels / (width * height)))
    return max(1, int(width * scale)), max(1, int(height * scale))


def prepared(raw: bytes, most_tokens: int) -> Shown:
    """The image, scaled down where it is too large, in a format that the API takes."""
    image, kind, size = _opened(raw, most_tokens)
    wanted = fitted(size, most_tokens)
    if kind in TAKEN and wanted == size and len(raw) <= MOST_SENT_BYTES:
        return Shown(kind, size, size, TAKEN[kind], raw)
    try:
        image.seek(0)
        scaled = image.convert("RGBA" if image.has_transparency_data else "RGB")
        scaled = scaled.resize(wanted) if scaled.size != wanted else scaled
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError(f"the image is damaged: {error}") from error
    return _written(scaled, kind, size)


def _opened(raw: bytes, most_tokens: int) -> tuple[Image, str, tuple[int, int]]:
    """The image, not decoded yet, its format and its size."""
    from PIL import Image as images  # noqa: PLC0415, N813  it takes a while, and few need it
    from PIL import UnidentifiedImageError  # noqa: PLC0415

    images.MAX_IMAGE_PIXELS = None  # ours is below
    try:
        image = images.open(io.BytesIO(raw), formats=READ)
    except UnidentifiedImageError as error:
        raise ImageError(f"it is no image of a known kind ({', '.join(READ)})") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError(f"the image is damaged: {error}") from error
    kind, size = image.format or "", image.size
    image.draft(None, fitted(size, most_tokens))
    if image.width * image.height > MOST_PIXELS:
        raise ImageError(
            f"it has {size[0]:,}x{size[1]:,} pixels; up to {MOST_PIXELS:,} are decoded. "
            "Make it smaller with another program first"
        )
    return image, kind, size


def _written(image: Image, kind: str, size: tuple[int, int]) -> Shown:
    """A picture without loss where that is short enough, else with some."""
    written = io.BytesIO()
    image.save(written, "PNG")
    if written.tell() <= MOST_SENT_BYTES:
        return Shown(kind, size, image.size, TAKEN["PNG"], written.getvalue())
    written = io.BytesIO()
    image.convert("RGB").save(written, "JPEG", quality=QUALITY)
    return Shown(kind, size, image.size, TAKEN["JPEG"], written.getvalue())
