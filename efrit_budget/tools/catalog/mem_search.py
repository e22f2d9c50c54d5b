"""The tool `mem_search`: searches observations by words."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from efrit_budget.errors import Json, JsonObject
from efrit_budget.memory import query
from efrit_budget.memory.packs import index_of, moment
from efrit_budget.memory.private import public
from efrit_budget.memory.store import Candidate
from efrit_budget.memory.wording import RESULTS
from efrit_budget.results.delivery import filled
from efrit_budget.results.marks import own
from efrit_budget.results.packer import Item, Section
from efrit_budget.tools.answers import Found, fitted
from efrit_budget.tools.base import Outcome, Tool, ToolContext, answer
from efrit_budget.tools.layout.observations import (
    Budget,
    Limit,
    ReadArguments,
    beginning,
    explained,
    item_of,
    line_of,
    minute,
)

REQUEST = "request"
"""The type that selects what the person asked, not observations."""
REQUESTS = "requests. Increase limit for more."
ANY_WORD = "No observation holds every word; these hold some of them."
NO_WORD = "The query holds no word; these are the best of all."


class MemSearchArguments(ReadArguments):
    """The arguments of `mem_search`."""

    query: Annotated[str, Field(description="Words; word* is a prefix")]
    limit: Limit = 10
    type: Annotated[str | None, Field(description="request: what the person asked")] = None
    tags: list[str] = Field(default_factory=list)
    token_budget: Budget | None = None
    explain: bool = False


class MemSearch(Tool):
    """Returns the observations that match, best first."""

    name = "mem_search"
    description = "Search all projects' memory for all words, or else any, best first."
    arguments = MemSearchArguments

    def run(self, arguments: MemSearchArguments, context: ToolContext) -> Outcome:
        """Return the observations that match, best first, as far as they fit."""
        if arguments.type == REQUEST:
            return _requests(arguments, context)
        filters = arguments.filters(arguments.type, tuple(arguments.tags))
        found = context.memory.search(arguments.query, filters, arguments.limit)
        if not found.total:
            return answer(_nothing(arguments.query, context), {"results": []})
        lead = own(ANY_WORD) + "\n" if found.any_word else ""
        if not query.parse_query(arguments.query).words:
            lead = own(NO_WORD) + "\n"
        section = Section(
            None,
            [_item(one, arguments, context) for one in found.candidates],
            [_fact(one, arguments) for one in found.candidates],
        )
        content = Found(lead, [section], "results", found.total, RESULTS)
        return _fitted(content, arguments, context)

    def compress(self, arguments: MemSearchArguments, outcome: Outcome) -> str:
        """Return the query, and the ids and titles of the first matches."""
        body = outcome.whole
        names = "; ".join(_name(one) for one in body.item_data)
        return f"Searched memory for {arguments.query!r}: {names or 'nothing'}"[:500]

    def kept_arguments(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments without the text in <private> tags."""
        return dict(public(arguments))


def _name(fact: JsonObject) -> str:
    """Return the number and title of an observation, or the time of a request."""
    return f"#{fact['id']} {fact['title']}" if "id" in fact else str(fact["asked_at"])


def _nothing(words: str, context: ToolContext) -> str:
    """Return the line that nothing matches, with words of memory spelled nearly alike."""
    near = context.memory.near_words(words.split())
    lines = [f"{word}: {', '.join(terms)}" for word, terms in near.items()]
    return f"No observation matches.{' Near words: ' if lines else ''}{'; '.join(lines)}"


def _requests(arguments: MemSearchArguments, context: ToolContext) -> Outcome:
    """Return what the person asked in past sessions with all the words, the latest first."""
    words = arguments.query.casefold().split()
    found, total = context.memory.requests(words, arguments.project or None, arguments.limit)
    if not found:
        return answer("No request of the person matches.", {"results": []})
    items = [
        Item((own(minute(one.asked), one.text), own(minute(one.asked), beginning(one.text))))
        for one in found
    ]
    facts: list[Json] = [{"asked_at": moment(one.asked), "text": one.text} for one in found]
    content = Found("", [Section(None, items, facts)], "results", total, REQUESTS)
    return _fitted(content, arguments, context)


def _fitted(content: Found, arguments: MemSearchArguments, context: ToolContext) -> Outcome:
    """Return what fits the smaller one of `max_tokens` and `token_budget`."""
    limits = filter(None, (arguments.max_tokens, arguments.token_budget))
    most = min(limits, default=None)
    if arguments.token_budget is not None and most is not None:
        context = replace(context, allowance=min(context.allowance, filled(most)))
    return fitted(content, most, context)


def _item(one: Candidate, arguments: MemSearchArguments, context: ToolContext) -> Item:
    line = line_of(one.observation, context.origin.project)
    if arguments.explain:
        line = f"{line} {explained(one.rank)}"
    return item_of(one.observation, context.origin.project, arguments.detail_level, line)


def _fact(one: Candidate, arguments: MemSearchArguments) -> Json:
    fact = index_of(one.observation)
    return {**fact, "rank": one.rank._asdict()} if arguments.explain else fact


TOOL = MemSearch()
