"""The tool `recall_result`: brings back compressed results and evicted turns."""

from typing import Annotated

from pydantic import Field

from efrit_budget.project.search.ripgrep import PatternError, UnfinishedError, matching_lines
from efrit_budget.results.body import Body
from efrit_budget.results.tokens import TokenError
from efrit_budget.tools.base import Arguments, Outcome, Tool, ToolContext, answer, failure


class RecallArguments(Arguments):
    """The arguments of `recall_result`."""

    handle: Annotated[str | None, Field(description="r7: a result; t7: a turn")] = None
    pattern: Annotated[str | None, Field(description="Regex of lines")] = None
    continuation_token: Annotated[str | None, Field(description="Of any result that was cut")] = (
        None
    )


class RecallResult(Tool):
    """Returns pages or matching lines of a stored result or turn, or of the work log."""

    name = "recall_result"
    description = (
        "Bring back any earlier result or turn by its handle, whole; without a handle, list the "
        "work log."
    )
    arguments = RecallArguments

    def run(self, arguments: RecallArguments, context: ToolContext) -> Outcome:
        """Return a stored result or turn, or the work log, or the lines of it that match."""
        try:
            return self._find(arguments, context)
        except (TokenError, PatternError, UnfinishedError) as error:
            return failure(error.message)

    def _find(self, arguments: RecallArguments, context: ToolContext) -> Outcome:
        if arguments.handle is None:
            body = context.results.listing()
            name = "the work log"
        else:
            stored = context.results.as_stored(arguments.handle)
            if arguments.pattern is None and stored is not None:
                return Outcome(stored=stored)
            body = context.results.body(arguments.handle)
            name = arguments.handle
        if arguments.pattern is None:
            return Outcome(body=body)
        lines = matching_lines(
            context.find_rg(), body.text, arguments.pattern, context.cancellation
        )
        if not lines:
            return answer(f"No line of {name} matches {arguments.pattern!r}.")
        return Outcome(body=Body("".join(f"{line}\n" for line in lines), noun="matching lines"))

    def compress(self, arguments: RecallArguments, outcome: Outcome) -> str:
        """Return the recalled handle or the work log, the pattern, and the number of items."""
        what = arguments.handle or "the work log"
        sought = f" matching {arguments.pattern!r}" if arguments.pattern else ""
        body = outcome.whole
        return f"Recalled {what}: {body.whole_count:,} {body.noun}{sought}."


TOOL = RecallResult()
