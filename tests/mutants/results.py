"""The outcomes of mutants: a file with a line for each, and a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutants.draw import Mutant
from tests.mutants.judge import Result, Verdict

BAR = 80
"""The percentage of mutants that the tests have to notice."""


def append(file: Path, result: Result) -> None:
    """Write a result behind the others."""
    site = result.mutant.site
    line = {
        "id": result.mutant.id,
        "verdict": result.verdict,
        "path": site.path,
        "line": site.line,
        "kind": site.kind,
        "before": site.before,
        "after": result.mutant.after,
        "test": result.test,
        "seconds": result.seconds,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def read(file: Path, mutants: Iterable[Mutant]) -> dict[str, Result]:
    """Read the results of these mutants, each the latest."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = {line["id"]: line for line in map(json.loads, lines)}
    return {
        mutant.id: Result(mutant, Verdict(line["verdict"]), line["test"], line["seconds"])
        for mutant in mutants
        if (line := kept.get(mutant.id)) is not None
    }


def percentage(results: Sequence[Result]) -> float:
    """Return the percentage of mutants that were noticed."""
    dead = sum(result.verdict.is_dead for result in results)
    return 100 * dead / len(results) if results else 0.0


def table(results: Sequence[Result]) -> str:
    """Return the counts for each room and in total, as a Markdown table."""
    rooms: dict[str, list[Result]] = {}
    for result in results:
        rooms.setdefault(str(Path(result.mutant.site.path).parent), []).append(result)
    lines = [
        f"| room | mutants | {' | '.join(Verdict)} | noticed |",
        "|---|" + "---:|" * (len(Verdict) + 2),
        *(_row(room, rooms[room]) for room in sorted(rooms)),
        _row("all", results),
    ]
    return "\n".join(lines)


def _row(name: str, results: Sequence[Result]) -> str:
    counts = Counter(result.verdict for result in results)
    numbers = [str(len(results)), *(str(counts[verdict]) for verdict in Verdict)]
    return f"| {name} | {' | '.join(numbers)} | {percentage(results):.1f}% |"
