"""The tool `list_symbols`: lists the definitions in a file with universal-ctags."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import JsonObject
from efrit_budget.project.paths import OutsideError, same_form
from efrit_budget.project.text import ctags
from efrit_budget.project.text.coding import mark_invalid
from efrit_budget.project.text.reading import NoFileError, Text, opened
from efrit_budget.project.text.symbols import Symbol, nest
from efrit_budget.results.body import Body, Source, marked, of_items
from efrit_budget.tools.base import Arguments, Hint, Outcome, Tool, ToolContext, failure, question
from efrit_budget.tools.near_files import no_file_failure
from efrit_budget.tools.sizes import counted, sized

MOST_BYTES = 16 * 1024 * 1024
MOST_SIGNATURE = 120


class ListSymbolsArguments(Arguments):
    """The arguments of `list_symbols`."""

    path: Annotated[str, Field(min_length=1)]


class ListSymbols(Tool):
    """Lists the definitions in a file, or in its unsaved buffer, by nesting."""

    name = "list_symbols"
    description = "Definitions in a file, nested, with their lines."
    arguments = ListSymbolsArguments
    hint = Hint("symbols", tokens_each=15)

    def run(self, arguments: ListSymbolsArguments, context: ToolContext) -> Outcome:
        """Return the definitions in a file or its unsaved buffer, or a failure or question."""
        try:
            located = context.project.locate(arguments.path)
            if context.project.is_secret(located) and not context.confirmed:
                prompt = f"List what {located.shown} defines? Such files usually hold secrets."
                return question(prompt)
            with opened(context.project, located, context.cancellation.check) as found:
                text = found.content
                if not isinstance(text, Text):
                    return failure(f"{located.shown} is not a text; read_file describes it")
                return _symbol_body(text, context)
        except (NoFileError, OutsideError, ctags.CtagsError) as error:
            return failure(error.message)
        except FileNotFoundError:
            return no_file_failure(arguments.path, context)
        except OSError as error:
            return failure(f"{same_form(arguments.path)}: {error.strerror or error}")

    def compress(self, arguments: ListSymbolsArguments, outcome: Outcome) -> str:
        """Return the number of definitions and the outermost ones."""
        body = outcome.whole
        outermost = [line for line in body.text.splitlines()[1:] if not line.startswith(" ")]
        text = f"Listed {counted(len(body.items), 'symbol')} of {same_form(arguments.path)}"
        return f"{text}: {'; '.join(outermost)}"[:500]


def _symbol_body(text: Text, context: ToolContext) -> Outcome:
    name = text.located.shown
    if text.size > MOST_BYTES:
        return failure(f"{name} has {sized(text.size)}; list_symbols reads up to 16 MB")
    program = ctags.find(context.cancellation)
    if program is None:
        return failure(f"list_symbols {ctags.INSTALL}")
    whole = mark_invalid(text.part(text.begin, text.end))
    found = nest(ctags.tags(program, text.located.name, whole, context.cancellation), whole)
    heading = marked(name, unsaved=text.is_buffer, stale=text.stale)
    facts: JsonObject = {"path": name, "unsaved": text.is_buffer, "stale": text.stale}
    if not found:
        message = f"{heading}: no symbols; ctags does not know its language, or it defines none"
        return Outcome(body=Body(message, data=facts | {"symbols": []}))
    items = [(_line(symbol), _fact(symbol)) for symbol in found]
    header = f"{heading} ({counted(len(items), 'symbol')})"
    body = of_items("symbols", [(header, items)], **facts)
    if text.modified_ns is not None:
        source = Source(text.located.name, text.modified_ns, text.size)
        body = replace(body, sources=(source,))
    return Outcome(body=body)


def _line(symbol: Symbol) -> str:
    tag = symbol.tag
    lines = f"{tag.line}-{symbol.end}" if symbol.end > tag.line else f"{tag.line}"
    signature = tag.signature
    if len(signature) > MOST_SIGNATURE:
        signature = signature[:MOST_SIGNATURE] + "…"
    return f"{'  ' * symbol.depth}{lines} {tag.kind} {symbol.name}{signature}"


def _fact(symbol: Symbol) -> JsonObject:
    tag = symbol.tag
    facts: JsonObject = {"name": tag.name, "kind": tag.kind}
    facts |= {"line": tag.line, "end": symbol.end, "depth": symbol.depth}
    if tag.scope:
        facts["scope"] = tag.scope
    if tag.signature:
        facts["signature"] = tag.signature
    return facts


TOOL = ListSymbols()
