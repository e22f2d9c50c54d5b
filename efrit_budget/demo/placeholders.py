"""Fill placeholders of a scenario: `{n}`, `{handle}` and values from results."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from efrit_budget.demo.conversation import ParsedRequest, plain
from efrit_budget.demo.scenario import ScriptedCall
from efrit_budget.errors import JsonObject

COUNT = re.compile(r"\{n(?:\*(\d+))?([+-]\d+)?\}")
NAMED = re.compile(r"\{([a-z_]+)\}")
TOKEN = r"\br[1-9]\d*:\d+-[0-9a-f]{4}\b"  # noqa: S105 - no password: a continuation token
WELL_KNOWN: Mapping[str, str] = {
    "handle": r"\b(r[1-9]\d*)\b",
    "continuation_token": f"({TOKEN})",
}


@dataclass(frozen=True)
class Filling:
    """The values of placeholders at one step."""

    round: int
    results: str
    """The text of the last tool results."""

    def text(self, text: str) -> str:
        """Return a text with its placeholders filled in; only `{n}` if another has no value."""
        return str(self._fill(text, {}) or COUNT.sub(self._count, text))

    def input(self, call: ScriptedCall) -> JsonObject:
        """Return a call's input, filled in; if a placeholder has no value, use `otherwise`."""
        try:
            filled: JsonObject = self._value(call.input, call.find)
        except LookupError:
            return call.input if call.otherwise is None else self._value(call.otherwise, {})
        return filled

    def _value(self, value: Any, find: Mapping[str, str]) -> Any:
        if isinstance(value, dict):
            return {name: self._value(inner, find) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner, find) for inner in value]
        if not isinstance(value, str):
            return value
        if counted := COUNT.fullmatch(value):
            return int(self._count(counted))
        filled = self._fill(value, find)
        if filled is None:
            raise LookupError(value)
        return filled

    def _fill(self, text: str, find: Mapping[str, str]) -> str | None:
        """Return the text filled in, or None if one of its placeholders has no value."""
        patterns = {**WELL_KNOWN, **find}
        for name in NAMED.findall(text):
            if name in patterns and name != "n":
                found = self._find_value(patterns[name], is_last=name in WELL_KNOWN)
                if found is None:
                    return None
                text = text.replace(f"{{{name}}}", found)
        return COUNT.sub(self._count, text)

    def _count(self, match: re.Match[str]) -> str:
        return str(self.round * int(match[1] or 1) + int(match[2] or 0))

    def _find_value(self, pattern: str, *, is_last: bool) -> str | None:
        """Return the last match if `is_last`, else the match of this round; None for no match."""
        matches = re.finditer(pattern, self.results, re.MULTILINE)
        found = [match[match.re.groups and 1] for match in matches]
        if not found:
            return None
        return found[-1] if is_last else found[(self.round - 1) % len(found)]


def last_results(conversation: ParsedRequest) -> str:
    """Return the text of the last turn with tool results, empty without one."""
    for turn in reversed(conversation.turns):
        if placed := turn.of_type("tool_result"):
            contents = [plain(one.block)["content"] for one in placed]
            return "\n".join(
                block["text"] for content in contents for block in content if "text" in block
            )
    return ""
