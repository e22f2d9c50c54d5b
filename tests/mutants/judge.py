"""Running tests against a mutant, and the outcome."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutants.child import run_pytest
from tests.mutants.draw import Mutant
from tests.mutants.reach import Reach

PATIENCE = 30.0
"""The seconds that any test may take, however fast it was when recorded."""
SLOWER = 20
"""The factor by which a mutant's tests may be slower than in the recorded run."""
FIRST_SECONDS = 10.0
"""The seconds of tests that are run first, because a smaller set is collected faster."""
FAILED = 1


class JudgeError(Exception):
    """The tests cannot be run, with a mutant or without."""


class Verdict(StrEnum):
    """The outcome of testing a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    NOT_REACHED = "not reached"

    @property
    def is_dead(self) -> bool:
        """Return whether the tests noticed the mutant."""
        return self in (Verdict.KILLED, Verdict.TIMED_OUT)


@dataclass(frozen=True)
class Result:
    """The outcome of a mutant, and the test that decided it."""

    mutant: Mutant
    verdict: Verdict
    test: str | None
    """The test that noticed; None if none did, or if the module no longer loads."""
    seconds: float


def judge(mutant: Mutant, reach: Reach, most_seconds: float) -> Result:
    """Run the tests that reach a mutant until one notices it, or so many seconds of them ran."""
    begun = time.monotonic()
    tests = reach.tests_for(mutant.site)
    verdict, test = Verdict.SURVIVED if tests else Verdict.NOT_REACHED, None
    for batch in _batches(tests, reach, most_seconds):
        verdict, test = _noticed(batch, reach, mutant)
        if verdict.is_dead:
            break
    return Result(mutant, verdict, test, round(time.monotonic() - begun, 1))


def failing_without_mutants(tests: Iterable[str], reach: Reach) -> set[str]:
    """Return the tests that fail without any change; their failures prove nothing."""
    chosen = sorted(set(tests))
    return {str(end["test"]) for end in _run(chosen, reach, None, [])[1]} if chosen else set()


def _batches(tests: Sequence[str], reach: Reach, most_seconds: float) -> Iterator[list[str]]:
    """Return the tests in two batches, the quick ones first, as far as the time allows."""
    parts: tuple[list[str], list[str]] = ([], [])
    spent = 0.0
    for test in tests:
        spent += reach.seconds[test]
        if spent <= most_seconds or not parts[0]:
            parts[spent > FIRST_SECONDS and bool(parts[0])].append(test)
    return (part for part in parts if part)


def _noticed(tests: list[str], reach: Reach, mutant: Mutant) -> tuple[Verdict, str | None]:
    code, ends = _run(tests, reach, mutant, ["-x"])
    if ends:
        verdict = Verdict.TIMED_OUT if ends[0]["timed_out"] else Verdict.KILLED
        return verdict, str(ends[0]["test"])
    if code == 0:
        return Verdict.SURVIVED, None
    if code is None:
        return Verdict.TIMED_OUT, None
    if _run(tests, reach, None, [])[0] not in (0, FAILED):
        raise JudgeError(f"the tests of {mutant} do not run without it either")
    return Verdict.KILLED, None


def _run(
    tests: list[str], reach: Reach, mutant: Mutant | None, options: list[str]
) -> tuple[int | None, list[dict[str, str | bool]]]:
    """Run tests in their order; gives the exit code, and the tests that failed or were too slow."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        limits = {test: PATIENCE + SLOWER * reach.seconds[test] for test in tests}
        chosen, killers, text = folder / "tests", folder / "killers", folder / "text"
        chosen.write_text(json.dumps(limits), encoding="utf-8")
        killers.touch()
        environment = {
            "MUTANT_TESTS": str(chosen),
            "MUTANT_KILLERS": str(killers),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # it starts in half the time
        }
        if mutant is not None:
            text.write_text(mutant.text(reach.root), encoding="utf-8")
            environment |= {"MUTANT_MODULE": mutant.site.module, "MUTANT_TEXT": str(text)}
        files = sorted({test.partition("::")[0] for test in tests})
        arguments = ["-p", "mutants_judging", *options, *files]
        code = run_pytest(
            reach.root, arguments, environment, folder / "output", PATIENCE + sum(limits.values())
        )
        ends = [json.loads(line) for line in killers.read_text(encoding="utf-8").splitlines()]
        return code, ends
