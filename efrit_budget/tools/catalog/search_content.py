"""The tool `search_content`: searches the project's files for a pattern."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import OutsideError, shown_name
from efrit_budget.project.project import Located
from efrit_budget.project.search.globs import Glob, GlobError
from efrit_budget.project.search.hits import Case, Hits, Query
from efrit_budget.project.search.ripgrep import PatternError, UnfinishedError
from efrit_budget.project.search.scope import scope_of
from efrit_budget.project.search.search import search
from efrit_budget.project.search.walk import Walk
from efrit_budget.results.body import HERE, LIKE_LINE, marked
from efrit_budget.tools.base import Arguments, Hint, Outcome, Tool, ToolContext, failure, question
from efrit_budget.tools.layout import matches
from efrit_budget.tools.near_files import no_path_failure
from efrit_budget.tools.sizes import counted

MOST_PATTERN = 10_000
MOST_NAMED, MOST_FIRST = 3, 20


class SearchContentArguments(Arguments):
    """The arguments of `search_content`."""

    pattern: Annotated[str, Field(min_length=1, description="Regex")]
    path: str = "."
    glob: str | None = None
    literal: bool = False
    case: Case = "sensitive"
    word: bool = False
    context: Annotated[int, Field(ge=0, le=50)] = 0
    files_only: bool = False
    count_only: bool = False
    max_matches: Annotated[int | None, Field(ge=1, description="Limit matches returned")] = None


class SearchContent(Tool):
    """Searches with rg; searches unsaved buffers in place of their files."""

    name = "search_content"
    description = (
        "Search file contents: lines, numbered, below each file's name; all are counted. Ignored "
        "and binary files are left out. Over lines: with \\n, [\\s\\S] or (?s)."
    )
    arguments = SearchContentArguments
    hint = Hint("matches", 30, "max_matches")

    def run(self, arguments: SearchContentArguments, context: ToolContext) -> Outcome:
        """Return the matches, or a failure or question if the path may not be searched."""
        if "\0" in arguments.pattern:
            return failure(r"a pattern cannot hold a NUL byte; in a regex, \x00 stands for one.")
        if len(arguments.pattern) > MOST_PATTERN:
            return failure(f"a pattern has at most {MOST_PATTERN:,} characters; search for less.")
        glob = None if arguments.glob is None else Glob(arguments.glob)
        try:
            located = context.project.locate(arguments.path)
            if glob is not None:
                glob.check()
        except (OutsideError, GlobError) as error:
            return failure(f"{error.message}. Give a path of the project, and a glob like *.py.")
        refused = _refusal(located, context)
        return refused or _search(arguments, context, located, glob)

    def compress(self, arguments: SearchContentArguments, outcome: Outcome) -> str:
        """Return the number of matches, and the first files with theirs."""
        body = outcome.whole
        facts = body.data
        by_file = ", ".join(f"{name} ({count:,})" for name, count in facts["first_files"].items())
        found = f"{facts['matching_lines']:,} matches for {arguments.pattern!r}"
        return f"Found {found} in {facts['matching_files']:,} files: {by_file}"[:500]


def _refusal(located: Located, context: ToolContext) -> Outcome | None:
    if ".git" in located.path.relative_to(located.root).parts:
        return failure(".git holds git's own files, which are not searched.")
    if not os.path.lexists(located.path) and context.project.buffer(located) is None:
        return no_path_failure(located.shown, context)
    if located.path.is_dir():
        return None
    if os.path.lexists(located.path) and not located.path.is_file():
        return failure(f"{located.shown} is neither a file nor a folder.")
    if context.project.is_secret(located) and not context.confirmed:
        return question(f"{located.shown} usually holds secrets. May it be searched?")
    return None


def _search(
    arguments: SearchContentArguments, context: ToolContext, located: Located, glob: Glob | None
) -> Outcome:
    target = os.path.relpath(located.path, located.root)
    walk = Walk(context.find_rg(), located.root, target, context.cancellation)
    query = Query(
        arguments.pattern, arguments.literal, arguments.case, arguments.word, arguments.context
    )
    counts = arguments.files_only or arguments.count_only
    try:
        scope = scope_of(walk, context.project, located, glob)
        hits = search(walk, scope, query, count=counts)
        context.project.locate(arguments.path)  # raises if a link now leads out of the project
    except PatternError as error:
        return failure(
            f"rg cannot use this: {error.message}\nliteral: true takes it as plain text."
        )
    except UnfinishedError as error:
        return failure(error.message)
    except OutsideError as error:
        return failure(f"{error.message}. Give a path of the project.")
    except OSError as error:
        return failure(f"{located.shown} cannot be searched: {error.strerror}. Narrow the path.")
    top = "" if located.root == context.project.root.resolve() else f"{located.root}/"
    return _Found(arguments, located, top, hits).outcome()


@dataclass(frozen=True)
class _Found:
    """The result of a search, and the arguments that say how to lay it out."""

    arguments: SearchContentArguments
    located: Located
    top: str
    """The prefix of displayed paths: empty in the project, else the extra folder's path."""
    hits: Hits

    def outcome(self) -> Outcome:
        """Return the matches below their files, or only the files, with notes."""
        arguments, hits, blocks = self.arguments, self.hits, self.hits.blocks
        joined = os.fsdecode(b"\0".join(block.path for block in blocks))
        paths = [self.top + name for name in joined.split("\0")] if blocks else []
        together = "/".join(paths)
        plain = together.isascii() and together.isprintable() and not {'"', "\\"} & set(together)
        names = paths if plain else list(map(shown_name, paths))
        facts: JsonObject = {
            "matching_lines": hits.matches,
            "matching_files": hits.matched_files,
            "searched_files": hits.searched_files,
            "first_files": {
                name: block.matches for name, block in zip(names[:MOST_FIRST], blocks, strict=False)
            },
        }
        if arguments.files_only or arguments.count_only:
            lay_out = matches.names if arguments.files_only else matches.counts
            body = lay_out(list(zip(paths, blocks, strict=True)), facts)
        else:
            headers = [f"{HERE}{name}" if LIKE_LINE.match(name) else name for name in names]
            headers = [
                marked(name, unsaved=True, stale=block.stale) if block.unsaved else name
                for name, block in zip(headers, blocks, strict=True)
            ]
            lay_out = matches.lines_in_context if arguments.context else matches.lines_alone
            body = lay_out(list(zip(headers, blocks, strict=True)), facts)
            body = replace(body, total=hits.matches)
        return Outcome(body=replace(body, most=arguments.max_matches), notes=tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        hits, arguments = self.hits, self.arguments
        files_alone = arguments.files_only or arguments.count_only
        if not hits.matches:
            yield f"No matches for {arguments.pattern!r} in {self._where()}."
        else:
            found = counted(hits.matches, "matching line")
            if hits.over_lines and files_alone:
                found = f"{counted(hits.matches, 'match', 'matches')} over lines"
            elif hits.over_lines:
                found = f"{counted(hits.matches, 'line')} in matches over lines"
            yield f"{found} in {counted(hits.matched_files, 'file')}."
        if files_alone:
            yield from self._notes_on_buffers()
        if hits.secret:
            yield f"Not searched, may hold secrets: {self._some(hits.secret)}"
        if hits.binary:
            yield f"Binary, so not told in full: {self._some(hits.binary)}"
        if hits.unsettled:
            left_out = counted(hits.unsettled, "file")
            yield f"{left_out} left out: folders changed meanwhile. Call again."
        if hits.unreadable:
            yield f"{counted(hits.unreadable, 'file')} or folders could not be read."

    def _notes_on_buffers(self) -> Iterator[str]:
        in_emacs = [os.fsdecode(block.path) for block in self.hits.blocks if block.unsaved]
        if in_emacs:
            yield f"In unsaved buffers: {self._some(in_emacs)}"
        stale = [os.fsdecode(block.path) for block in self.hits.blocks if block.stale]
        if stale:
            yield f"Changed on disk since Emacs read them: {self._some(stale)}"

    def _where(self) -> str:
        """Return a description of the searched files, for the note that nothing matches."""
        arguments = self.arguments
        files = counted(self.hits.searched_files, "file")
        below = "" if arguments.path == "." else f" below {self.located.shown}"
        glob = f" that fit {arguments.glob}" if arguments.glob else ""
        case = ", case counts" if arguments.case == "sensitive" else ""
        over = ", over lines too" if self.hits.over_lines else ""
        return f"{files}{below}{glob}{case}{over}; ignored ones left out"

    def _some(self, names: Sequence[str]) -> str:
        displayed = [shown_name(self.top + name) for name in names[:MOST_NAMED]]
        more = len(names) - MOST_NAMED
        return ", ".join(displayed) + (f", {more:,} more" if more > 0 else "")


TOOL = SearchContent()
