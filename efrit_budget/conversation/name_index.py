"""Write the index of names: those of results that the window does not show in full.

A rewrite puts it behind the lines of evicted turns. Names that the window has anyway are left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection

from efrit_budget.conversation import calls
from efrit_budget.conversation.blocks import readable_texts
from efrit_budget.conversation.evicted import lines_cost
from efrit_budget.conversation.pieces import PieceState
from efrit_budget.errors import JsonObject
from efrit_budget.results.names import LEAST, known_names, names, ranked
from efrit_budget.results.tokens import handle

TITLE = "Names in results that are not here in full; recall_result brings a result back:"
CHARACTERS = 4
"""The most characters of a token, by which the room for names is first estimated."""
SMALLER = 0.9
"""The share of that room that is tried next if the names found cost too much."""
LATEST = 1_000
"""The latest results that left whose names may be listed."""
LEFT = (PieceState.COMPRESSED, PieceState.GONE)


def write_index(
    connection: Connection,
    session_id: str,
    visible: Iterable[str],
    allowance: int,
    cost: Callable[[str], int],
) -> str | None:
    """Return the names of results that left, most frequent first, each once, by their results.

    `visible` are the texts of the window. The index costs at most `allowance`; return None if it
    would be empty.
    """
    candidates = Candidates(frozenset[str]().union(*map(names, visible)))
    for row in calls.list_texts(connection, session_id, LEFT, LATEST):
        candidates.add(row["number"], row["delivered"])
    in_order = ranked(candidates.counted)
    room = float(allowance * CHARACTERS)
    while in_order and room > len(TITLE):
        text = written(in_order, candidates.latest, int(room) - len(TITLE))
        if lines_cost(text, cost) <= allowance:
            return text if text != TITLE else None
        room *= SMALLER
    return None


def texts_of(messages: Iterable[JsonObject]) -> Iterator[str]:
    """Yield the texts in messages that the model can read."""
    for message in messages:
        for block in message["content"]:
            yield from readable_texts(block)


@dataclass
class Candidates:
    """The names that may be listed, with their counts and the latest results that have them."""

    visible: frozenset[str]
    counted: Counter[str] = field(default_factory=Counter)
    latest: dict[str, int] = field(default_factory=dict)

    def add(self, number: int, text: str) -> None:
        """Count the names of a result, which is older than those that were added before."""
        for name, times in known_names(text).items():
            if name not in self.visible:
                self.counted[name] += times
                self.latest.setdefault(name, number)


def written(in_order: Sequence[str], latest: dict[str, int], room: int) -> str:
    """Return the title and a line for each result, with names of at most `room` characters."""
    lines: dict[int, list[str]] = {}
    for name in in_order:
        line = lines.get(latest[name], [f"{handle(latest[name])}:"])
        need = len(name) + 1 + (len(line[0]) + 1 if len(line) == 1 else 0)
        if need <= room:
            line.append(name)
            lines[latest[name]] = line
            room -= need
        elif room < LEAST:
            break
    return "\n".join([TITLE, *(" ".join(lines[number]) for number in sorted(lines))])
