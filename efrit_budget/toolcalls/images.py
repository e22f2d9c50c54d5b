"""Put images that the client recorded into a result."""

import io
from dataclasses import replace

from efrit_budget.project.images import ImageError, PreparedImage, prepare
from efrit_budget.results.body import preceded
from efrit_budget.results.marks import own
from efrit_budget.toolcalls.entry_draft import Produced

TEXT_SHARE = 4
"""The text beside images has one part in so many of the allowance."""
LEAST_TOKENS = 10
"""The tokens below which an image would show nothing."""


def with_images(produced: Produced, allowance: int) -> Produced:
    """Return what a call produced with its images prepared; they share the allowance with the text.

    A line for each image stands before the text; it says why, if the image cannot be shown.
    """
    images = produced.outcome.images
    if not images:
        return produced
    share = (allowance - allowance // TEXT_SHARE) // len(images)
    found = [_prepared(image, share) for image in images]
    lines = [own(f"image {number}: {_line(one)}") for number, one in enumerate(found, 1)]
    shown = [one for one in found if isinstance(one, PreparedImage)]
    body = preceded("".join(f"{line}\n" for line in lines), produced.outcome.whole)
    body = replace(
        body,
        content=tuple(image.block() for image in shown),
        content_tokens=sum(image.tokens for image in shown),
    )
    return replace(produced, outcome=replace(produced.outcome, body=body))


def _prepared(image: bytes, most: int) -> PreparedImage | str:
    """Return an image of at most `most` tokens, or the reason why it cannot be shown."""
    if most < LEAST_TOKENS:
        return "no budget is left for it"
    try:
        return prepare(io.BytesIO(image), most, lambda: None)
    except ImageError as error:
        return error.message


def _line(found: PreparedImage | str) -> str:
    """Return the description of an image, by which equal results are known to be equal."""
    if isinstance(found, str):
        return f"not shown: {found}"
    width, height = found.size
    return f"{found.kind} {width}x{height}, sha256 {found.digest}"
