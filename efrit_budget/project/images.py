"""Prepare images for a model: formats, sizes and costs."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING

from efrit_budget.errors import EfritError
from efrit_budget.project.contents import FRAMES, jpeg_segments

if TYPE_CHECKING:
    from PIL.Image import Image

READ = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM", "TGA", "PCX")
TAKEN = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
MOST_SENT_BYTES = 3_500_000
"""The most bytes of an image that is sent: the API takes 5 MB in base64."""
LONGEST_SIDE = 1568
PIXELS_PER_TOKEN = 750
MOST_TOKENS = 1600
"""The API itself shrinks an image of more tokens, or with a side above LONGEST_SIDE."""
MOST_PIXELS = 50_000_000
MOST_DECODING_BYTES = 256 * 1024 * 1024
"""The most memory for decoding, all images at one time together."""
AT_ONCE = 2
LOOK_SECONDS = 0.1
PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2}
"""The bytes that Pillow keeps for a pixel, by the image's mode; four for modes not listed."""
BESIDE = {"WEBP": 12, "GIF": 8, "BMP": 1}
"""The bytes that a format's decoder keeps for a pixel besides those of Pillow, by format."""
TILE_TAGS = (322, 323)
"""The TIFF tags of the width and height of tiles, which may be larger than the image."""
START_OF_SCAN = 0xDA
ICON, PNG = b"\0\0\1\0", b"\x89PNG\r\n\x1a\n"
MOST_ICON_PIXELS = 4_000_000
PART_SIDE = 1024
"""The approximate side, in pixels, of the parts in which an image is scaled."""
QUALITY = 85

Check = Callable[[], object]
"""A function that raises if the tool call was cancelled."""


class ImageError(EfritError):
    """An image cannot be shown."""


@dataclass(frozen=True)
class PreparedImage:
    """An image as it is sent, with the format (`kind`) and the size of the original."""

    kind: str
    size: tuple[int, int]
    shown_size: tuple[int, int]
    media_type: str
    data: bytes

    @property
    def tokens(self) -> int:
        """The tokens that the API charges for the sent image."""
        return tokens_of(self.shown_size)

    @property
    def digest(self) -> str:
        """The beginning of the SHA-256 hash of the sent image."""
        return hashlib.sha256(self.data).hexdigest()[:12]

    def block(self) -> dict[str, object]:
        """Return the image as a content block of the Messages API."""
        encoded = base64.b64encode(self.data).decode()
        source = {"type": "base64", "media_type": self.media_type, "data": encoded}
        return {"type": "image", "source": source}


def tokens_of(size: tuple[int, int]) -> int:
    """Return the tokens of an image of this size."""
    return math.ceil(size[0] * size[1] / PIXELS_PER_TOKEN)


def fit_size(size: tuple[int, int], most_tokens: int) -> tuple[int, int]:
    """Return the size scaled down, if needed, to `most_tokens` and the limits of the API."""
    width, height = size
    pixels = min(most_tokens, MOST_TOKENS) * PIXELS_PER_TOKEN
    scale = min(1.0, LONGEST_SIDE / max(size), math.sqrt(pixels / (width * height)))
    return max(1, int(width * scale)), max(1, int(height * scale))


def prepare(file: IO[bytes], most_tokens: int, check: Check) -> PreparedImage:
    """Return the image in `file`, scaled down and converted as the API and `most_tokens` need.

    Two images are decoded at a time; a third one waits, and `check` may raise meanwhile.
    """
    with _memory.held(1, 0, check):
        image, kind = _open(file)
        size = image.size
        wanted = fit_size(size, most_tokens)
        if kind in TAKEN and wanted == size and _length(file) <= MOST_SENT_BYTES:
            file.seek(0)
            return PreparedImage(kind, size, size, TAKEN[kind], file.read(MOST_SENT_BYTES))
        image.draft(None, wanted)
        needed = _memory_needed(image, kind, size, file)
        if needed > MOST_DECODING_BYTES:
            raise _too_large(size, math.prod(size) * MOST_DECODING_BYTES // needed)
        with _memory.held(0, needed, check):
            scaled = _scale(image, wanted)
            image.close()  # else a cycle of references may keep it in memory
        return _written(scaled, kind, size)


def _length(file: IO[bytes]) -> int:
    return file.seek(0, os.SEEK_END)


def _open(file: IO[bytes]) -> tuple[Image, str]:
    """Return the image, undecoded, and its format."""
    from PIL import Image as images  # noqa: PLC0415, N813  the import is slow and rarely needed
    from PIL import UnidentifiedImageError  # noqa: PLC0415

    images.MAX_IMAGE_PIXELS = None  # MOST_PIXELS is checked below
    try:
        icon = _from_icon(file)
        image = images.open(icon or file, formats=["PNG"] if icon else READ)
    except UnidentifiedImageError as error:
        raise ImageError(f"it is not an image of a known kind ({', '.join(READ)})") from error
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError(f"the image is damaged: {error}") from error
    if image.width * image.height > MOST_PIXELS:
        raise _too_large(image.size, MOST_PIXELS)
    return image, "ICO" if icon else image.format or ""


def _too_large(size: tuple[int, int], most: int) -> ImageError:
    return ImageError(
        f"it has {size[0]:,}x{size[1]:,} pixels; up to {most:,} are decoded of this kind. "
        "Make it smaller with another program first"
    )


def _from_icon(file: IO[bytes]) -> IO[bytes] | None:
    """Return the largest PNG in an icon file; None if there is none, or `file` is no icon file.

    Raise if an icon in the older format has too many pixels; smaller ones are left to Pillow.
    """
    head = _part(file, 0, 6)
    if head[:4] != ICON:
        return None
    largest: tuple[int, int, int] = (0, 0, 0)
    for number in range(int.from_bytes(head[4:6], "little")):
        entry = _part(file, 6 + 16 * number, 16)
        length, start = (int.from_bytes(entry[at : at + 4], "little") for at in (8, 12))
        inner = _part(file, start, 24)
        if inner.startswith(PNG):
            width, height = (int.from_bytes(inner[at : at + 4], "big") for at in (16, 20))
            largest = max(largest, (width * height, start, length))
        else:
            width, height = (int.from_bytes(inner[at : at + 4], "little") for at in (4, 8))
            if width * height > MOST_ICON_PIXELS:
                raise _too_large((width, height), MOST_ICON_PIXELS)
    file.seek(0)
    return io.BytesIO(_part(file, *largest[1:])) if largest[0] else None


def _part(file: IO[bytes], start: int, length: int) -> bytes:
    file.seek(start)
    return file.read(length)


def _memory_needed(image: Image, kind: str, size: tuple[int, int], file: IO[bytes]) -> int:
    """Return the bytes of memory that decoding an image needs."""
    pixels = image.width * image.height
    kept = pixels * PIXEL_BYTES.get(image.mode, 4)
    if kind == "JPEG":
        return kept + (
            0 if _comes_in_one_scan(file) else 2 * len(image.getbands()) * math.prod(size)
        )
    if kind == "TIFF":
        tile = [int(getattr(image, "tag_v2").get(tag, 0)) for tag in TILE_TAGS]  # noqa: B009
        return 2 * kept + 4 * math.prod(tile)
    return kept + pixels * BESIDE.get(kind, 0) + (_length(file) if kind == "WEBP" else 0)


def _comes_in_one_scan(file: IO[bytes]) -> bool:
    """Return whether a JPEG is stored in one scan, so that it can be decoded line by line."""
    colours = 0
    for segment in jpeg_segments(partial(_part, file)):
        if segment[1] == START_OF_SCAN:
            return segment[4] == colours
        if segment[1] in (0xC0, 0xC1):
            colours = segment[9]
        elif segment[1] in FRAMES:
            return False
    return False


def _scale(image: Image, wanted: tuple[int, int]) -> Image:
    """Return an image's first frame in the wanted size, scaled in parts to save memory."""
    from PIL import Image as images  # noqa: PLC0415, N813

    try:
        image.seek(0)
        image.load()
        mode = "RGBA" if image.has_transparency_data else "RGB"
        across, down = (max(1, had // has) for had, has in zip(image.size, wanted, strict=True))
        small = images.new(mode, (-(-image.width // across), -(-image.height // down)))
        step_x, step_y = (each * max(1, PART_SIDE // each) for each in (across, down))
        for top in range(0, image.height, step_y):
            for left in range(0, image.width, step_x):
                box = (left, top, min(left + step_x, image.width), min(top + step_y, image.height))
                part = image.crop(box).convert(mode).reduce((across, down))
                small.paste(part, (left // across, top // down))
        return small.resize(wanted) if small.size != wanted else small
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError(f"the image is damaged: {error}") from error


class _Memory:
    """Limits decoding to AT_ONCE images and MOST_DECODING_BYTES of memory at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._turns = 0
        self._bytes = 0

    @contextmanager
    def held(self, turns: int, count: int, check: Check) -> Iterator[None]:
        """Wait until `turns` more images and `count` more bytes fit; reserve them for the block."""
        with self._changed:
            while not (
                self._turns + turns <= AT_ONCE and self._bytes + count <= MOST_DECODING_BYTES
            ):
                check()
                self._changed.wait(LOOK_SECONDS)
            self._turns += turns
            self._bytes += count
        try:
            yield
        finally:
            with self._changed:
                self._turns -= turns
                self._bytes -= count
                self._changed.notify_all()


_memory = _Memory()


def _written(image: Image, kind: str, size: tuple[int, int]) -> PreparedImage:
    """Return a scaled image encoded as PNG, or as JPEG if the PNG is too large to be sent."""
    form, written = "PNG", io.BytesIO()
    image.save(written, form)
    if written.tell() > MOST_SENT_BYTES:
        form, written = "JPEG", io.BytesIO()
        image.convert("RGB").save(written, form, quality=QUALITY)
    return PreparedImage(kind, size, image.size, TAKEN[form], written.getvalue())
