"""Change the code in small ways, one at a time, and see whether the tests notice.

The first run records which tests reach which lines, by running the tests once; later runs go by
that record. Each change is then judged by the tests that reach it, the fastest first, until one
fails. The work tree is not touched: only the processes under test load the changed file.
Exits with 1 when fewer than 80 of a hundred changes are noticed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutants import results
from tests.mutants.draw import COUNT, SEED, ChangedError, Mutant, drawn
from tests.mutants.judge import JudgeError, Result, failing_without_mutants, judge
from tests.mutants.reach import Reach, RecordError, loaded, record
from tests.mutants.sites import sites_under

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = tuple(f"efrit_budget/{room}" for room in ("budget", "conversation", "results"))
KEPT = Path(".mutants")


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--list", action="store_true", help="only list the changes that are drawn")
    add("--count", type=int, default=COUNT, help="how many to draw (%(default)s)")
    add("--seed", type=int, default=SEED, help="the number that the draw depends on (%(default)s)")
    add("--rooms", nargs="+", default=ROOMS, metavar="FOLDER", help="what to change")
    add("--record", nargs="*", metavar="TEST", help="record these tests anew (without any: all)")
    add("--only-record", action="store_true", help="judge nothing")
    add("--resume", action="store_true", help="keep the results there are")
    add("--again", action="store_true", help="with --resume, judge anew what no test noticed")
    add("--jobs", type=int, default=2, help="how many tests run at once (%(default)s)")
    add("--seconds", type=float, default=120, help="of tests for a change, at most (%(default)s)")
    add("--root", type=Path, default=ROOT, help="another checkout to work on")
    add("--map", type=Path, default=KEPT / "reach.json.gz", help="the record (%(default)s)")
    add("--results", type=Path, default=KEPT / "results.jsonl", help="a line each (%(default)s)")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the check that the command line describes and return the exit code."""
    options = parser().parse_args(arguments)
    mutants = drawn(sites_under(options.root, options.rooms), options.count, options.seed)
    if options.list:
        print("\n".join(f"{mutant.id}  {mutant}" for mutant in mutants))
        return 0
    try:
        reach = recorded(options)
        if options.only_record:
            return 0
        found = judged(mutants, reach, options)
    except (ChangedError, JudgeError, RecordError) as error:
        print(error, file=sys.stderr)
        return 2
    print(results.table(found))
    return 0 if results.percentage(found) >= results.BAR else 1


def recorded(options: argparse.Namespace) -> Reach:
    """Read the record, and record what is asked for or was never recorded."""
    reach = loaded(options.root, options.rooms, options.map)
    if options.record is not None or not reach.seconds:
        for test in record(reach, options.record or ["tests"], options.jobs):
            print(f"does not pass, and judges nothing: {test}")
        reach.save(options.map)
        print(f"recorded: {len(reach.seconds)} tests")
    reach.check()
    return reach


def judged(mutants: Sequence[Mutant], reach: Reach, options: argparse.Namespace) -> list[Result]:
    """Judge the mutants that have no result yet and return the results of all."""
    if not options.resume:
        options.results.unlink(missing_ok=True)
    found = results.read(options.results, mutants)
    done = {name for name, result in found.items() if result.verdict.is_dead or not options.again}
    left = [mutant for mutant in mutants if mutant.id not in done]
    while left:
        for result in judged_at_once(left, reach, options):
            results.append(options.results, result)
            found[result.mutant.id] = result
        left = unsure(found.values(), left, reach)
    return [found[mutant.id] for mutant in mutants]


def judged_at_once(
    mutants: Sequence[Mutant], reach: Reach, options: argparse.Namespace
) -> Iterable[Result]:
    """Judge several mutants at a time and report each."""
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(judge, mutant, reach, options.seconds) for mutant in mutants]
        try:
            for number, future in enumerate(as_completed(waiting), 1):
                result = future.result()
                by = f"  by {result.test}" if result.test else ""
                told = f"{number}/{len(mutants)}  {result.verdict}  {result.mutant}{by}"
                print(told, flush=True)
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


def unsure(found: Iterable[Result], judged_now: Sequence[Mutant], reach: Reach) -> list[Mutant]:
    """Drop tests that fail without a mutant from the record; return the mutants they judged."""
    names = {mutant.id for mutant in judged_now}
    dead = [result for result in found if result.mutant.id in names and result.test]
    failing = failing_without_mutants((result.test for result in dead if result.test), reach)
    for test in failing:
        print(f"fails without a mutant too, and judges nothing: {test}")
        del reach.seconds[test]
    return [result.mutant for result in dead if result.test in failing]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
