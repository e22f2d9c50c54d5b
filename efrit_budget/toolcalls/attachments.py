"""Attach files of the project to the person's message, within the tier of user messages."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from efrit_budget.budget.tiers import Tier
from efrit_budget.conversation.bounds import Bounds
from efrit_budget.errors import JsonObject
from efrit_budget.project.images import ImageError, prepare
from efrit_budget.project.paths import OutsideError, same_form
from efrit_budget.project.project import Project, open_beneath
from efrit_budget.project.stamps import stamp_of
from efrit_budget.project.text.reading import NoFileError, Opened, Text, opened
from efrit_budget.tools.layout.lines import Spot, Stretch, Until, forward
from efrit_budget.tools.sizes import counted

FRAME = 80
"""The tokens reserved for the lines above and below an attached text."""
LEAST_SHARE = 4
"""Attached files may take one part in so many of the tier, whatever else the message has."""

Check = Callable[[], object]
"""A function that raises if the call was cancelled."""


class NotAttachedError(Exception):
    """A file cannot be attached; the text says why."""


@dataclass(frozen=True)
class Attachment:
    """A file attached to a message: its blocks, or the question or problem that stands against it.

    `facts` say in words what is attached, such as "lines 1-80 of 900".
    """

    path: str
    stamp: str | None = None
    """The stamp of the file whose text is attached; None for a buffer's text and for images."""
    blocks: Sequence[JsonObject] = field(default_factory=list)
    tokens: int = 0
    facts: str = ""
    cut: bool = False
    question: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Attacher:
    """Attaches files of one project to one message."""

    project: Project
    bounds: Bounds
    check: Check
    confirmed: frozenset[str] = field(default_factory=frozenset)
    """The paths, as given, about whose secrets the person was asked."""
    only_count: bool = False
    """Whether images are not read, since only their tokens are wanted."""

    def attach(self, paths: Sequence[str], beside: Sequence[str]) -> list[Attachment]:
        """Attach files beside the texts of a message; each gets its share of the room left."""
        limit = self.bounds.limits.tiers[Tier.USER_MESSAGE]
        taken = sum(map(self.bounds.cost, beside))
        room = max(limit - taken, limit // LEAST_SHARE)
        made: list[Attachment] = []
        for index, path in enumerate(paths):
            made.append(self._attach(path, room // (len(paths) - index)))
            room -= made[-1].tokens
        return made

    def _attach(self, path: str, room: int) -> Attachment:
        try:
            located = self.project.locate(path)
            if self.project.is_secret(located) and path not in self.confirmed:
                question = f"Attach {located.shown}? Files of this name usually hold secrets."
                return Attachment(located.shown, question=question)
            with opened(self.project, located, self.check) as found:
                if isinstance(found.content, Text):
                    return self._text(found.content, room)
            return self._image(found, room)
        except (NotAttachedError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return Attachment(same_form(path), problem=f"{same_form(path)}: {reason}")
        except (NoFileError, OutsideError) as error:
            return Attachment(same_form(path), problem=error.message)

    def _text(self, text: Text, room: int) -> Attachment:
        """Return the text of a file from its beginning, as far as there is room."""
        path, start = text.located.shown, Spot(text.begin, 1)
        stretch = forward(text, start, Until(text.end), room - FRAME, self.bounds.cost_to_cut)
        facts = _facts(text, stretch) + (", not saved" if text.is_buffer else "")
        lines = [*stretch.labelled(), *_how_to_read_on(text, stretch)]
        tokens = self.bounds.cost(
            "\n".join((f"[Attached file {path}, {facts}, ~99,999 tokens:]", *lines))
        )
        heading = f"[Attached file {path}, {facts}, ~{counted(tokens, 'token')}:]"
        block: JsonObject = {"type": "text", "text": "\n".join((heading, *lines))}
        stamp = None if text.modified_ns is None else stamp_of(text.size, text.modified_ns)
        return Attachment(path, stamp, [block], tokens, facts, cut=stretch.next is not None)

    def _image(self, found: Opened, room: int) -> Attachment:
        """Return an image; raise if the file is no image, or if there is no room."""
        located = found.located
        if not getattr(found.content, "is_image", False):
            raise NotAttachedError("it holds no text, and is no image")
        needed = self.bounds.block_cost({"type": "image"})
        if room < needed:
            raise NotAttachedError(
                f"an image takes up to {needed:,} tokens, and the message has room for {room:,}"
            )
        if self.only_count:
            return Attachment(located.shown, tokens=needed, facts="image")
        try:
            with os.fdopen(open_beneath(located), "rb") as file:
                image = prepare(file, room, self.check)
        except ImageError as error:
            raise NotAttachedError(error.message) from error
        facts = f"{image.kind} {image.size[0]}x{image.size[1]}"
        label = f"[Attached image {located.shown}, {facts}, ~{counted(needed, 'token')}:]"
        heading: JsonObject = {"type": "text", "text": label}
        blocks = [heading, image.block()]
        tokens = sum(map(self.bounds.block_cost, blocks))
        return Attachment(located.shown, blocks=blocks, tokens=tokens, facts=facts)


def _facts(text: Text, stretch: Stretch) -> str:
    total = text.known_lines()
    if stretch.next is None:
        return counted(len(stretch.lines), "line") if stretch.lines else "empty"
    of_all = "" if total is None else f" of {total:,}"
    if stretch.columns:
        return f"columns 1-{stretch.columns[1]:,} of line 1{of_all}"
    return f"lines 1-{stretch.last_line:,}{of_all}"


def _how_to_read_on(text: Text, stretch: Stretch) -> list[str]:
    """Return a line that says how the model reads the rest, or nothing if there is none."""
    if stretch.next is None:
        return []
    path, line = text.located.shown, stretch.next.line
    return [f"[This is the beginning of {path}; read_file with start_line {line} reads on.]"]
