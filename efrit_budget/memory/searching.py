"""Search observations by words; rank them by relevance, recency, importance and use."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from sqlite3 import Connection
from typing import NamedTuple

from efrit_budget.memory.observation import Filters, Observation
from efrit_budget.memory.query import WordMatch
from efrit_budget.memory.rows import ALL, COLUMNS_OF_O, conditions, count, get, observation_of

DAY = 86_400.0
HALF_LIFE_DAYS = 30.0
RECENCY, IMPORTANCE, ACCESS = 0.25, 0.25, 0.1
"""The most that each part of a rank adds, as a share of the relevance."""
HALF_ACCESSES = 5
"""The number of readings for which the access part is half of its most."""
MOST_HALVINGS = 60

LONGEST = 6
"""The number of longest words of which observations much like another have two."""
MOST_COMPARED = 20
WORD = re.compile(r"[^\W_]+")
DIFFERENT_LETTERS = 3
LIKENESS = 0.75
TERMS = """
SELECT term FROM observations_vocabulary WHERE length(term) BETWEEN :least AND :most"""
SHARING = f"""
SELECT {COLUMNS_OF_O} FROM observations_spelled AS w
CROSS JOIN observations AS o ON o.id = w.rowid
WHERE w.observations_spelled MATCH :words AND o.id <> :id AND o.project = :project
LIMIT {MOST_COMPARED}"""  # noqa: S608  own words
PARTS = """
SELECT id, -1.0 AS rank FROM observations
WHERE deleted IS NULL AND NOT EXISTS (SELECT 1 FROM json_each(:parts) AS part
  WHERE instr(lower(title || char(10) || content), part.value) = 0)"""
"""Finds each observation that holds all of the texts, also inside of words."""
WORDS = """
SELECT rowid AS id, rank FROM observations_words WHERE observations_words MATCH :words"""
BEGINNINGS = """
SELECT rowid AS id, rank FROM observations_spelled WHERE observations_spelled MATCH :beginnings"""
# The `+` keeps SQLite from querying the second index anew for each row of the first.
BOTH = f"""
SELECT id, sum(rank) AS rank FROM ({WORDS} UNION ALL {BEGINNINGS}
  AND +rowid IN (SELECT rowid FROM observations_words WHERE observations_words MATCH :words))
GROUP BY id HAVING count(*) = 2"""  # noqa: S608  own words
EITHER = f"SELECT id, sum(rank) AS rank FROM ({WORDS} UNION ALL {BEGINNINGS}) GROUP BY id"  # noqa: S608  own words
MATCHED = """
FROM ({hits}) AS w CROSS JOIN observations AS o ON o.id = w.id WHERE true"""
FACTS = """
SELECT o.id, {relevance} AS relevance, o.importance, o.accesses,
  max(0.0, (:now - o.updated) / :half_life) AS age"""
FACTS_OF_MATCHED = FACTS.format(relevance="-w.rank") + MATCHED
FACTS_OF_ALL = FACTS.format(relevance=1.0) + ALL
BEST = f"""
SELECT {COLUMNS_OF_O}, best.relevance FROM (
  SELECT id, relevance FROM ({{facts}})
  ORDER BY relevance * (
      1 + :importance * importance + :access * accesses / (accesses + :half_accesses)
      + :recency * (1 - min(age - min(CAST(age AS INTEGER), :halvings), 1.0) / 2)
        / (1 << min(CAST(age AS INTEGER), :halvings))) DESC,
    id DESC LIMIT :limit
) AS best CROSS JOIN observations AS o ON o.id = best.id"""  # noqa: S608  own words
"""Selects the best observations, ordered by the same score that `rank_of` computes."""


class Rank(NamedTuple):
    """The score of an observation, and the parts that it is made of."""

    score: float
    relevance: float
    """BM25, the larger the better; 1 in a search without words."""
    recency: float
    """1 for an observation saved just now, halved with each half-life since then."""
    importance: float
    access: float
    """0 for an observation that was never read, towards 1 for one that is read often."""


@dataclass(frozen=True)
class RankClock:
    """The time that ages are measured from, and the half-life of recency."""

    now: float
    half_life_days: float = HALF_LIFE_DAYS

    @property
    def half_life(self) -> float:
        """The half-life in seconds."""
        return self.half_life_days * DAY


def rank_of(observation: Observation, relevance: float, clock: RankClock) -> Rank:
    """Return the rank of an observation."""
    age = max(0.0, (clock.now - observation.updated) / clock.half_life)
    halvings = min(int(age), MOST_HALVINGS)
    recency = (1 - min(age - halvings, 1.0) / 2) / (1 << halvings)
    access = observation.accesses / (observation.accesses + HALF_ACCESSES)
    importance = observation.importance
    score = relevance * (1 + RECENCY * recency + IMPORTANCE * importance + ACCESS * access)
    return Rank(score, relevance, recency, importance, access)


def best(
    connection: Connection, filters: Filters, match: WordMatch | None, limit: int, clock: RankClock
) -> list[tuple[Observation, Rank]]:
    """Return the best observations that match words and filters, of equal ones the latest first.

    `match` is None for a search without words.
    """
    where, values = conditions(filters)
    facts = (FACTS_OF_MATCHED.format(hits=_hits(match)) if match else FACTS_OF_ALL) + where
    values |= {
        "now": clock.now,
        "half_life": clock.half_life,
        "recency": RECENCY,
        "importance": IMPORTANCE,
        "access": ACCESS,
        "half_accesses": HALF_ACCESSES,
        "halvings": MOST_HALVINGS,
        "limit": limit,
    }
    rows = connection.execute(BEST.format(facts=facts), values | _expressions(match))
    found = [
        (observation := observation_of(row), rank_of(observation, relevance, clock))
        for *row, relevance in rows
    ]
    return sorted(found, key=lambda pair: (pair[1].score, pair[0].id), reverse=True)


def alike(
    connection: Connection, number: int, least_percent: int, most: int
) -> list[tuple[Observation, int]]:
    """Return observations of the same project with mostly the same words, and the percentage.

    Only those are compared that have two of its longest words, too.
    """
    one = get(connection, number)
    words = set() if one is None else _words_of(one)
    if one is None or not words:
        return []
    longest = sorted(words, key=lambda word: (-len(word), word))[:LONGEST]
    pairs = " OR ".join(f'("{first}" "{second}")' for first, second in combinations(longest, 2))
    values = {"words": pairs or f'"{longest[0]}"', "id": number, "project": one.project}
    rows = connection.execute(SHARING, values)
    shares = [
        (other, 100 * len(words & its) // len(words | its))
        for other in map(observation_of, rows)
        if (its := _words_of(other))
    ]
    near = [pair for pair in shares if pair[1] >= least_percent]
    return sorted(near, key=lambda pair: -pair[1])[:most]


def _words_of(one: Observation) -> set[str]:
    return set(WORD.findall(f"{one.title} {one.content}".casefold()))


def near_words(connection: Connection, words: Sequence[str]) -> dict[str, list[str]]:
    """Return for each word that no observation has those that are spelled nearly like it."""
    from difflib import get_close_matches  # noqa: PLC0415 - searches must not wait for it

    found: dict[str, list[str]] = {}
    for word in {part for given in words for part in WORD.findall(given.casefold())}:
        bounds = {"least": len(word) - 2, "most": len(word) + 2}
        terms = [row[0] for row in connection.execute(TERMS, bounds)]
        letters = set(word)
        likely = [term for term in terms if len(letters ^ set(term)) <= DIFFERENT_LETTERS]
        near = [] if word in likely else get_close_matches(word, likely, 3, LIKENESS)
        if near:
            found[word] = near
    return found


def count_matches(connection: Connection, filters: Filters, match: WordMatch | None) -> int:
    """Return the number of observations that match; deleted ones are not in the indexes."""
    if match is None:
        return count(connection, filters)
    where, values = conditions(filters)
    source = MATCHED + where if where else "FROM ({hits})"
    statement = f"SELECT count(*) {source}".format(hits=_hits(match))
    return int(connection.execute(statement, values | _expressions(match)).fetchone()[0])


def put_first(
    first: Sequence[Observation],
    found: list[tuple[Observation, Rank]],
    total: int,
    limit: int,
    clock: RankClock,
) -> tuple[list[tuple[Observation, Rank]], int]:
    """Return what a search found with the observations `first` before it, and the new total."""
    numbers = {one.id for one in first}
    others = [pair for pair in found if pair[0].id not in numbers]
    more = len(first) - (len(found) - len(others))
    ranked = [(one, rank_of(one, 1.0, clock)) for one in first]
    return (ranked + others)[:limit], total + (more if total < limit else 0)


def _hits(match: WordMatch) -> str:
    """Return the SQL that queries the indexes which the words need."""
    if match.parts:
        return PARTS
    if match.words and match.beginnings:
        return EITHER if match.any_word else BOTH
    return WORDS if match.words else BEGINNINGS


def _expressions(match: WordMatch | None) -> dict[str, str]:
    if match is None:
        return {}
    parts = json.dumps(match.parts, ensure_ascii=False)
    return {"words": match.words, "beginnings": match.beginnings, "parts": parts}
