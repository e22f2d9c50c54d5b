"""Find observations by their words, best first."""

from __future__ import annotations

import sqlite3

from efrit_budget.memory.finding import ALL, COLUMNS_OF_O, count
from efrit_budget.memory.observation import Filters, Observation
from efrit_budget.memory.query import Match
from efrit_budget.memory.ranking import (
    ACCESS,
    DAY,
    HALF_ACCESSES,
    IMPORTANCE,
    MOST_HALVINGS,
    RECENCY,
    Clock,
    Parts,
    parts_of,
)
from efrit_budget.memory.rows import conditions, observation_of

WORDS = """
SELECT rowid AS id, rank FROM observations_words WHERE observations_words MATCH :words"""
BEGINNINGS = """
SELECT rowid AS id, rank FROM observations_spelled WHERE observations_spelled MATCH :beginnings"""
# The sign keeps the second index from being asked anew for each row of the first.
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
COUNTED_HITS = "SELECT count(*) FROM ({hits})"


def best(
    connection: sqlite3.Connection,
    filters: Filters,
    match: Match | None,
    limit: int,
    clock: Clock,
) -> list[tuple[Observation, Parts]]:
    """Return the best matches of words and filters, or of all if there are no words.

    Of equals, the one saved last comes first.
    """
    where, values = conditions(filters)
    facts = (FACTS_OF_MATCHED.format(hits=_hits(match)) if match else FACTS_OF_ALL) + where
    parameters = {**values, **_rank(clock), **_expressions(match), "limit": limit}
    found = []
    for *row, relevance in connection.execute(BEST.format(facts=facts), parameters):
        observation = observation_of(row)
        found.append((observation, parts_of(observation, relevance, clock)))
    return sorted(found, key=_goodness, reverse=True)


def _hits(match: Match) -> str:
    """Return the statement that queries the indexes."""
    if match.words and match.beginnings:
        return EITHER if match.any_word else BOTH
    return WORDS if match.words else BEGINNINGS


def _expressions(match: Match | None) -> dict[str, str]:
    return {} if match is None else {"words": match.words, "beginnings": match.beginnings}


def _goodness(found: tuple[Observation, Parts]) -> tuple[float, int]:
    observation, parts = found
    return parts.score, observation.id


def _rank(clock: Clock) -> dict[str, float]:
    return {
        "now": clock.now,
        "half_life": clock.half_life_days * DAY,
        "recency": RECENCY,
        "importance": IMPORTANCE,
        "access": ACCESS,
        "half_accesses": HALF_ACCESSES,
        "halvings": MOST_HALVINGS,
    }


def count_of(connection: sqlite3.Connection, filters: Filters, match: Match | None) -> int:
    """Return how many observations match; the indexes hold no deleted ones."""
    where, values = conditions(filters)
    if match is None:
        return count(connection, filters)
    statement = "SELECT count(*)" + MATCHED + where if where else COUNTED_HITS
    found = connection.execute(
        statement.format(hits=_hits(match)), {**values, **_expressions(match)}
    )
    return int(found.fetchone()[0])
