"""Search results, one line each."""

from __future__ import annotations

from efrit_budget.budget.plain import token_footer
from efrit_budget.memory.observation import Observation
from efrit_budget.memory.packing import Pack
from efrit_budget.memory.packs import compact, index_of, moment, name_of
from efrit_budget.memory.wording import navigation_hint

SHELL = "results. Use --limit, --token-budget or 'efrit-budget memory get ID' for more."
NONE = "No memory matches."
SOME_WORDS = "No memory holds every word; these hold some of them."


class Lines:
    """The form for people."""

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the whole text."""
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


class LinesJson:
    """The form for programs, on one line."""

    def text(self, pack: Pack, tokens: int) -> str:
        """Return the whole text."""
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
        """Return one observation."""
        return compact(index_of(memory))
