"""Write context packs and lists of observations, each as text or as JSON."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from efrit_budget.budget.plain import Cost, token_footer
from efrit_budget.errors import Json
from efrit_budget.memory.observation import Filters, Observation
from efrit_budget.memory.packing import Form, Pack, PackText, pack
from efrit_budget.memory.store import MemoryStore
from efrit_budget.memory.wording import navigation_hint
from efrit_budget.results.marks import own, quote

CANDIDATES = 50
"""The number of best matches that are tried for a pack."""
DEFAULT_BUDGET = 2000
ALL_PROJECTS = "all"
SHELL = "results. Use --limit, --token-budget or 'efrit-budget memory get ID' for more."
NONE = "No memory matches."
SOME_WORDS = "No memory holds every word; these hold some of them."
BETWEEN = "\n\n---\n\n"
NEWLINES = "\r\n"
"""The characters stripped from both ends of a content; blanks stay, as they may indent a line."""


def context_pack(
    store: MemoryStore, query: str, filters: Filters, budget: int, form: Form, cost: Cost
) -> PackText:
    """Return a pack for a query or a project, within the budget."""
    found = store.search(query, filters, CANDIDATES)
    empty = Pack(found.total, budget, filters.project, found.any_word)
    return pack(empty, [each.observation for each in found.candidates], form, cost)


@dataclass(frozen=True)
class Markdown:
    """Writes a pack as Markdown: a heading, the observations, and a line on those left out."""

    marked: bool = False
    """Whether its own lines are marked and contents are quoted, as in the result of a tool."""

    may_end_in_blank_lines = True

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the pack as Markdown, with `tokens` as its stated cost."""
        count = f"{len(pack.memories)} memories, ~{tokens} tokens"
        heading = f"# Project Context: {pack.project or ALL_PROJECTS} ({count})"
        body = BETWEEN.join(map(self.entry, pack.memories))
        rest = _left_out_line(pack)
        return "\n\n".join(filter(None, (self._own(heading), body, rest and self._own(rest))))

    def entry(self, memory: Observation) -> str:
        """Return one observation with its facts and content."""
        tags = f" | tags: {', '.join(memory.tags)}" if memory.tags else ""
        facts = f"*{moment(memory.created)[:10]} | importance: {memory.importance:g}{tags}*"
        content = memory.content.strip(NEWLINES)
        text = quote(content) if self.marked else content
        return f"{self._own(f'## {name_of(memory)}')}\n{self._own(facts)}\n\n{text}"

    def _own(self, line: str) -> str:
        return own(line) if self.marked else line


def _left_out_line(pack: Pack) -> str:
    if not pack.left_out or not pack.counted:
        return ""
    names = ", ".join(f"{name_of(one.memory)} (~{one.tokens} tokens)" for one in pack.named)
    return f"*Left out: {pack.left_out} of {pack.total}{': ' if names else ''}{names}*"


def name_of(memory: Observation) -> str:
    """Return kind and title of an observation on one line."""
    return f"[{memory.kind}] {' '.join(memory.title.split())}"


class PackJson:
    """Writes a pack as JSON for programs, on one line."""

    may_end_in_blank_lines = False

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the pack as JSON, with `tokens` as its stated cost."""
        return compact(
            {
                "memories": [facts_of(memory) for memory in pack.memories],
                "total_tokens": tokens,
                "budget": pack.budget,
                "project_id": pack.project,
                "left_out": pack.left_out,
                "skipped": [
                    {"id": one.memory.id, "title": one.memory.title, "tokens": one.tokens}
                    for one in pack.named
                ],
            }
        )

    def entry(self, memory: Observation) -> str:
        """Return one observation as JSON, with its content."""
        return compact(facts_of(memory))


class ListLines:
    """Writes a list of observations for people, one on each line."""

    may_end_in_blank_lines = False

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the list as text, with `tokens` as its stated cost."""
        named = ", ".join(f"#{one.memory.id} (~{one.tokens} tokens)" for one in pack.named)
        lines = [
            SOME_WORDS if pack.any_word else "",
            *map(self.entry, pack.memories),
            NONE if not pack.total else "",
            f"Too long for what is left: {named}." if named else "",
            navigation_hint(len(pack.memories), pack.total, SHELL) if pack.counted else "",
            token_footer(tokens).lstrip("\n") if pack.budget is not None else "",
        ]
        return "\n".join(filter(None, lines))

    def entry(self, memory: Observation) -> str:
        """Return one observation on a line."""
        tags = f", tags: {', '.join(memory.tags)}" if memory.tags else ""
        facts = f"{moment(memory.updated)[:10]}, importance: {memory.importance:g}{tags}"
        return f"#{memory.id} {name_of(memory)} ({facts})"


class ListJson:
    """Writes a list of observations as JSON for programs, on one line."""

    may_end_in_blank_lines = False

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the list as JSON, with `tokens` as its stated cost."""
        return compact(
            {
                "results": [index_of(memory) for memory in pack.memories],
                "returned": len(pack.memories),
                "total": pack.total,
                "any_word": pack.any_word,
                "total_tokens": tokens,
                "budget": pack.budget,
                "skipped": [{"id": one.memory.id, "tokens": one.tokens} for one in pack.named],
            }
        )

    def entry(self, memory: Observation) -> str:
        """Return one observation as JSON, without its content."""
        return compact(index_of(memory))


def compact(facts: Json) -> str:
    """Return a value as JSON text without blanks."""
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def facts_of(memory: Observation) -> dict[str, Json]:
    """Return the facts of an observation as a JSON object, with its content."""
    return {**index_of(memory), "content": memory.content}


def index_of(memory: Observation) -> dict[str, Json]:
    """Return the facts of an observation as a JSON object, without its content."""
    return {
        "id": memory.id,
        "kind": memory.kind,
        "title": memory.title,
        "tags": list(memory.tags),
        "importance": memory.importance,
        "project_id": memory.project,
        "scope": memory.scope,
        "created_at": moment(memory.created),
        "updated_at": moment(memory.updated),
    }


def moment(seconds: float) -> str:
    """Return a time as ISO 8601 text in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
