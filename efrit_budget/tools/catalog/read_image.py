"""The tool `read_image`: shows an image of the project to the model."""

import os
import stat
from typing import Annotated

from pydantic import Field

from efrit_budget.project.images import ImageError, PreparedImage, prepare
from efrit_budget.project.paths import OutsideError, same_form
from efrit_budget.project.project import Located, open_beneath
from efrit_budget.results.body import Body, Source
from efrit_budget.tools.base import Arguments, Outcome, Tool, ToolContext, failure, question
from efrit_budget.tools.near_files import no_file_failure

MOST_BYTES = 50_000_000
TEXT_RESERVE = 120
"""The tokens reserved for the line about the image and for the footer."""
LEAST_TOKENS = 30


class ReadImageArguments(Arguments):
    """The arguments of `read_image`."""

    path: Annotated[str, Field(min_length=1)]


class ReadImage(Tool):
    """Returns the image, scaled to the API's limits and the allowance."""

    name = "read_image"
    description = "See an image file, scaled down where it is large."
    arguments = ReadImageArguments

    def run(self, arguments: ReadImageArguments, context: ToolContext) -> Outcome:
        """Return the image, scaled to fit, or a failure or question if it cannot be shown."""
        try:
            located = context.project.locate(arguments.path)
            if context.project.is_secret(located) and not context.confirmed:
                return question(f"{located.shown} usually holds secrets. Show it to the model?")
            return self._show(located, context)
        except OutsideError as error:
            return failure(f"{error.message}. Give a file of the project.")
        except FileNotFoundError:
            return no_file_failure(arguments.path, context)
        except OSError as error:
            return failure(
                f"{arguments.path}: {error.strerror}. project_files lists what is there."
            )
        except ImageError as error:
            return failure(f"{arguments.path}: {error.message}. read_file reads what is text.")

    def _show(self, located: Located, context: ToolContext) -> Outcome:
        most = context.allowance - TEXT_RESERVE
        if most < LEAST_TOKENS:
            needed = TEXT_RESERVE + LEAST_TOKENS
            return failure(
                f"An image needs {needed} tokens at least; {context.allowance} are left."
            )
        found = context.project.stat(located)
        if not stat.S_ISREG(found.st_mode):
            return failure(f"{located.shown} is not a file; file_info describes it.")
        if found.st_size > MOST_BYTES:
            return failure(f"{located.shown} has {found.st_size:,} bytes; at most {MOST_BYTES:,}.")
        with os.fdopen(open_beneath(located), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return failure(f"{located.shown} was changed meanwhile; call again.")
            image = prepare(file, most, context.cancellation.check)
        body = Body(
            f"{located.shown}: {_description(image, found.st_size)}\n",
            data=_facts(located, image, found.st_size),
            sources=(Source(located.name, found.st_mtime_ns, found.st_size),),
            content=(image.block(),),
            content_tokens=image.tokens,
        )
        return Outcome(body=body)

    def compress(self, arguments: ReadImageArguments, outcome: Outcome) -> str:
        """Return the path, format and size of the image."""
        facts = outcome.whole.data
        size = f"{facts['format']} {facts['width']}x{facts['height']}"
        path = same_form(arguments.path)[:400]
        return f"Saw the image {path} ({size}, {facts['bytes']:,} bytes)."


def _description(image: PreparedImage, size: int) -> str:
    width, height = image.size
    smaller = "" if image.shown_size == image.size else ", shown at {}x{}".format(*image.shown_size)
    return f"{image.kind} {width}x{height}, {size:,} bytes{smaller}, sha256 {image.digest}"


def _facts(located: Located, image: PreparedImage, size: int) -> dict[str, object]:
    return {
        "path": located.shown,
        "format": image.kind,
        "width": image.size[0],
        "height": image.size[1],
        "shown_width": image.shown_size[0],
        "shown_height": image.shown_size[1],
        "bytes": size,
        "image_tokens": image.tokens,
    }


TOOL = ReadImage()
