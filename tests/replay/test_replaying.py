"""What a replay counts, beside figures found by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from efrit_budget.budget.models import model_named
from efrit_budget.budget.prices import CACHE_SECONDS
from efrit_budget.cli.parser import run
from efrit_budget.replay.blocks import Measure
from efrit_budget.replay.pricing import Till
from efrit_budget.replay.references import ApiClearing, Entry, Past
from tests.replay.recordings import claude_code

MODEL = "claude-opus-4-6"


def long_text(seed: int) -> str:
    """Return a file of about 3,000 tokens with a name of its own."""
    return f"def only_here_{seed}(): pass\n" + f"some words of file {seed} follow here\n" * 400


@pytest.fixture
def replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that replays turns with options, and returns the accounts by name."""

    def replay(*turns: tuple[str | None, str, dict[str, str]], options: str = "") -> Any:
        file = tmp_path / "session.jsonl"
        file.write_text(claude_code(*turns), encoding="utf-8")
        assert run(["replay", str(file), "--model", MODEL, "--json", *options.split()]) == 0
        (session,) = json.loads(capsys.readouterr().out)["sessions"]
        return {account["name"]: account for account in session["accounts"]}

    return replay


def test_a_fact_is_needed_if_it_first_occurred_in_a_result(replayed: Any) -> None:
    accounts = replayed(
        ("Where is known_name?", "I look.", {"a.py": "found_one = known_name + found_two"}),
        (None, "It uses found_one and known_name.", {}),
        ("Why?", "Because found_one is made_up.", {}),
    )
    ours = accounts["efrit"]
    assert (ours["needed_facts"], ours["needed_facts_in_view"]) == (2, 2)


def test_without_pressure_every_way_sends_the_same(replayed: Any) -> None:
    accounts = replayed(("Look.", "I look.", {"a.py": "found_one"}), (None, "Done.", {}))
    assert len({account["dollars"] for account in accounts.values()}) == 1
    assert all(account["rewrites"] == 0 for account in accounts.values())


def test_under_pressure_ours_stays_below_its_limit_and_costs_less(replayed: Any) -> None:
    turns = [("Look.", "I look.", {f"f{n}.py": long_text(n)}) for n in range(30)]
    accounts = replayed(*turns, options="--total 30000")
    ours, unmanaged = accounts["efrit"], accounts["unmanaged"]
    assert ours["largest_prompt"] <= 21_000 * 1.01
    assert unmanaged["largest_prompt"] > 60_000
    assert ours["rewrites"] > 0
    assert ours["dollars"] < 0.75 * unmanaged["dollars"]


def test_a_fact_of_a_result_that_left_is_still_in_its_line(replayed: Any) -> None:
    turns = [("Look.", "I look.", {f"f{n}.py": long_text(n)}) for n in range(12)]
    accounts = replayed(*turns, ("And?", "See only_here_0.", {}), options="--total 30000")
    assert accounts["efrit"]["needed_facts_in_view"] == 1
    assert accounts["API clearing"]["needed_facts_in_view"] == 0
    assert accounts["drop oldest"]["needed_facts_in_view"] == 0


def test_a_repeated_call_counts_if_its_result_is_the_same(replayed: Any) -> None:
    accounts = replayed(
        ("Look.", "I look.", {"a.py": "one"}),
        (None, "Again.", {"a.py": "one"}),
        (None, "And again.", {"a.py": "two"}),
        (None, "Done.", {}),
    )
    ours = accounts["efrit"]
    assert (ours["repeated_calls"], ours["repeated_calls_in_view"]) == (1, 1)


def test_a_prompt_that_was_not_sent_for_long_is_paid_anew() -> None:
    model = model_named(MODEL)
    measure = Measure(model)
    blocks = [measure.text("some words " * 5_000)]
    soon, late = Till(model), Till(model)
    for till, pause in ((soon, CACHE_SECONDS - 1), (late, CACHE_SECONDS + 1)):
        till.charge(blocks, 0, 0.0)
        till.charge(blocks, 0, pause)
    assert soon.charges[1].read == blocks[0].tokens
    assert late.charges[1].read == 0
    assert late.charges[1].dollars == pytest.approx(12.5 * soon.charges[1].dollars)


def test_the_apis_clearing_keeps_the_latest_results_and_clears_enough_or_nothing() -> None:
    measure = Measure(model_named(MODEL))

    def past() -> Past:
        entries = [
            Entry(measure.text(long_text(n)), measure.text("cleared"), is_result=True)
            for n in range(5)
        ]
        return Past([], [[entry] for entry in entries])

    full, some = past(), past()
    assert not ApiClearing(full.total).make_room(full)
    assert not ApiClearing(1_000, clear_at_least=some.total).make_room(some)
    assert ApiClearing(1_000, keep=3).make_room(some)
    assert [entry.cleared is None for entry in some.entries()] == [True, True, False, False, False]


def test_the_table_has_a_line_for_each_session_and_a_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for file in files:
        file.write_text(claude_code(("Look.", "I look.", {"a.py": "x"})), encoding="utf-8")
    assert run(["replay", *map(str, files)]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:4] == ["session", "turns", "largest", "epochs"]
    assert [line.split()[0] for line in lines] == ["one.jsonl", "two.jsonl", "all"]


def test_the_plot_has_a_line_for_each_way(tmp_path: Path) -> None:
    file, picture = tmp_path / "a<b.jsonl", tmp_path / "out.svg"
    file.write_text(claude_code(("Look.", "I look.", {"a.py": "x"})), encoding="utf-8")
    assert run(["replay", str(file), "--plot", str(picture)]) == 0
    tree = ElementTree.parse(picture)
    assert len(tree.findall(".//{http://www.w3.org/2000/svg}polyline")) == 6
    assert "a<b.jsonl" in "".join(tree.getroot().itertext())


def test_a_model_without_a_price_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", str(tmp_path / "x"), "--model", "no-such-model"]) == 1
    assert "the price list does not have no-such-model" in capsys.readouterr().err
