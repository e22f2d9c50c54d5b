"""The tool `read_file`: reads the lines of a file, one page at a time."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import OutsideError, same_form
from efrit_budget.project.text.reading import NoFileError, Opened, Pointer, Text, opened
from efrit_budget.results.body import Body, Source, marked
from efrit_budget.tools.base import (
    Arguments,
    Hint,
    Outcome,
    Tool,
    ToolContext,
    answer,
    failure,
    question,
)
from efrit_budget.tools.line_ranges import Asked, Further, NoLineError, Served
from efrit_budget.tools.near_files import no_file_failure
from efrit_budget.tools.sizes import counted, sized

TAIL = " § continuation_token r10000:100000-ffff continues.\n📏 ~10,000 tokens · 100k left"
"""The longest text that delivery adds to a page."""
ATTEMPTS = 4
MOST_TAIL = 1_000_000
EDGE_LINES = 3
MOST_SHORT = 500

Line = Annotated[int, Field(ge=1)]


class ReadFileArguments(Arguments):
    """The arguments of `read_file`."""

    path: Annotated[str, Field(min_length=1)]
    start_line: Annotated[Line | None, Field(description="From 1")] = None
    end_line: Line | None = None
    around_line: Annotated[Line | None, Field(description="50 on either side")] = None
    tail: Annotated[int, Field(ge=1, le=MOST_TAIL, description="Last lines")] | None = None


class ReadFile(Tool):
    """Reads the lines that fit, and stores the spot from which the next page goes on."""

    name = "read_file"
    description = (
        "A file's lines, numbered: all, start_line to end_line, around a line, or the last ones. "
        "12:801 is line 12 from column 801 on; lines of a tail that nobody counted are numbered "
        "-1 backwards. Binary files are described."
    )
    arguments = ReadFileArguments
    hint = Hint("lines", tokens_each=12)

    def run(self, arguments: ReadFileArguments, context: ToolContext) -> Outcome:
        """Return the first page of the lines, or a failure or question."""
        problem = _conflict(arguments)
        if problem is not None:
            return failure(problem)
        request = Asked(
            arguments.start_line, arguments.end_line, arguments.around_line, arguments.tail
        )
        return _serve(arguments.path, request, context, confirmed=context.confirmed)

    def resume(self, more: JsonObject, context: ToolContext) -> Outcome:
        """Return the page that follows the one with this `more`."""
        return _serve(more["path"], Further(more), context, confirmed=more["confirmed"])

    def compress(self, arguments: Arguments, outcome: Outcome) -> str:
        """Return which lines were read, with the first and the last few of them."""
        del arguments  # a later page has none
        body = outcome.whole
        lines = body.text.split("\n")
        if "start_line" not in body.data:
            return f"Read {outcome.text}"[:MOST_SHORT]
        where = body.position.partition(";")[0].replace("Line", "line")
        text = f"Read {lines[0]}, {where}"
        head, tail = lines[1 : 1 + EDGE_LINES], lines[1 + EDGE_LINES :][-EDGE_LINES:]
        room = (MOST_SHORT - len(text) - 10) // (len(head) + len(tail)) - 1
        if room <= 0:
            return text[:MOST_SHORT]
        edges = [*(line[:room] for line in head), "…", *(line[:room] for line in tail)]
        return "\n".join((text, *edges))[:MOST_SHORT]


def _conflict(arguments: ReadFileArguments) -> str | None:
    """Return why the arguments contradict each other, or None if they do not."""
    start, end = arguments.start_line, arguments.end_line
    has_range = start is not None or end is not None
    choices = has_range + (arguments.around_line is not None) + (arguments.tail is not None)
    if choices > 1:
        return "give one of: start_line and end_line; around_line; tail"
    if start is not None and end is not None and end < start:
        return f"end_line {end:,} is before start_line {start:,}; give end_line {start:,} or more"
    return None


def _serve(path: str, finder: Asked | Further, context: ToolContext, *, confirmed: bool) -> Outcome:
    """Return a page of a file, a description of a file without lines, a failure or question."""
    try:
        located = context.project.locate(path)
        if context.project.is_secret(located) and not confirmed:
            return question(f"Read {located.shown}? Files of this name usually hold secrets.")
        with opened(context.project, located, context.cancellation.check) as found:
            if isinstance(found.content, Text) and found.content.end > found.content.begin:
                return _page(found.content, finder, context, confirmed=confirmed)
            return _describe(found)
    except (NoFileError, OutsideError, NoLineError) as error:
        place = f"{same_form(path)}: " if isinstance(error, NoLineError) else ""
        return failure(f"{place}{error.message}")
    except FileNotFoundError:
        return no_file_failure(path, context)
    except OSError as error:
        return failure(f"{same_form(path)}: {error.strerror or error}; it cannot be read")


def _page(text: Text, finder: Asked | Further, context: ToolContext, *, confirmed: bool) -> Outcome:
    about = _heading(text)
    room = context.allowance - context.cost(about + TAIL)
    for _ in range(ATTEMPTS):
        current = finder.page(text, max(room, context.allowance // 4), context)
        body, notes = _body(text, current, about), tuple(_notes(text, current))
        whole = "\n".join((body.text, *notes, body.position + TAIL))
        excess = context.cost(whole) - context.allowance
        if excess <= 0:
            break
        room -= excess + 1
    if current.more is not None:
        name = text.located.shown
        more = {**current.more, "path": name, "state": text.state, "confirmed": confirmed}
        body = replace(body, more=more)
    return Outcome(body=body, notes=notes)


def _body(text: Text, served: Served, about: str) -> Body:
    stretch = served.stretch
    ends = {"LF": "", "CRLF": ", CRLF", "mixed": ", CRLF in part", None: ""}[stretch.line_ends]
    parts = [f"{about}{ends})\n", *(f"{line}\n" for line in stretch.labelled())]
    if stretch.is_cut:
        parts[-1] = parts[-1].removesuffix("\n")
    sources = (
        ()
        if text.modified_ns is None
        else (Source(text.located.name, text.modified_ns, text.size),)
    )
    return Body(
        "".join(parts),
        items=tuple(accumulate(map(len, parts[:-1]))),
        headers=(0,),
        data=_facts(text, served),
        item_data=stretch.lines,
        sources=sources,
        position=_position(text, served),
    )


def _heading(text: Text) -> str:
    """Return the start of the first line: path, number of lines, size and encoding of a text."""
    total = text.known_lines()
    lines = None if total is None else counted(total, "line")
    known = filter(None, (lines, sized(text.size), text.coding.label))
    name = marked(text.located.shown, unsaved=text.is_buffer, stale=text.stale)
    return f"{name} ({', '.join(known)}"


def _facts(text: Text, served: Served) -> JsonObject:
    stretch = served.stretch
    facts: JsonObject = {
        "path": text.located.shown,
        "size": text.size,
        "encoding": text.coding.codec,
        "bom": text.coding.bom > 0,
        "line_ends": stretch.line_ends,
        "unsaved": text.is_buffer,
        "stale": text.stale,
        "total_lines": text.known_lines(),
        "start_line": stretch.first.line,
        "end_line": stretch.last_line,
    }
    if stretch.columns is not None:
        facts["columns"] = list(stretch.columns)
    if served.changed:
        facts["changed_since"] = [text.located.shown]
    return facts


def _position(text: Text, served: Served) -> str:
    stretch = served.stretch
    total = text.known_lines()
    of_all = "" if total is None else f" of {total:,}"
    first, last = f"{stretch.first.line:,}", f"{stretch.last_line:,}"
    lines = f"Lines {first}-{last}" if stretch.first.line > 0 else f"Lines {first} to {last}"
    if stretch.first.line == stretch.last_line:
        lines = f"Line {first}"
    columns = "{:,}-{:,}".format(*stretch.columns) if stretch.columns else ""
    of_line = f", columns {columns}" if columns and stretch.is_cut else ""
    return f"{lines}{of_all}{of_line}{'; backwards,' if served.goes_back else '.'}"


def _notes(text: Text, served: Served) -> Iterator[str]:
    stretch = served.stretch
    if served.changed:
        yield f"Changed since the page before: {text.located.shown}."
    if signs := stretch.signs():
        yield signs
    reaches_end = stretch.next is None or served.goes_back
    is_last = stretch.last_line == (text.known_lines() or -1)
    if reaches_end and is_last and not text.ends_with_newline():
        yield "The last line has no newline."


def _describe(found: Opened) -> Outcome:
    """Return the description of a file that is binary, empty or a Git LFS pointer."""
    path, size, content = found.located.shown, found.size, found.content
    facts: JsonObject = {"path": path, "size": size, "lines": []}
    if isinstance(content, Pointer):
        text = f"{path}: a Git LFS pointer to {content.size:,} bytes; the content is not here"
        return answer(f"{text} (git lfs pull fetches it)", facts | {"lfs_size": content.size})
    if isinstance(content, Text):
        name = marked(path, unsaved=content.is_buffer, stale=content.stale)
        unsaved: JsonObject = {"unsaved": content.is_buffer, "stale": content.stale}
        return answer(f"{name}: empty", facts | unsaved)
    facts |= {"binary": True, "kind": content.kind}
    pixels = ""
    if content.dimensions:
        facts["width"], facts["height"] = content.dimensions
        pixels = "{}x{}, ".format(*content.dimensions)
    what = "" if content.kind == "binary" else f"{content.kind}, "
    instead = "; read_image shows it" if content.is_image else ""
    text = f"{path}: {what}{pixels}{counted(size, 'byte')}, binary: not shown{instead}"
    return answer(text, facts)


TOOL = ReadFile()
