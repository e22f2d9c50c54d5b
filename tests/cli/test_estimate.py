"""`efrit-budget estimate`."""

from __future__ import annotations

import json
from pathlib import Path

from efrit_budget.budget.estimate import estimate
from tests.cli.command import efrit


def test_each_file_has_its_tokens_and_the_sum_stands_below(tmp_path: Path) -> None:
    one, two = tmp_path / "one.md", tmp_path / "two words ü.txt"
    one.write_text("Hello, tokens!\n" * 10, encoding="utf-8")
    two.write_text("私は日本語を書きます。\n" * 10, encoding="utf-8")
    ended = efrit("estimate", str(one), str(two))
    sizes = [estimate(file.read_text(encoding="utf-8")) for file in (one, two)]
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == [
        f"{tokens:,}" for tokens in (*sizes, sum(sizes))
    ]


def test_json_has_paths_tokens_and_the_total(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("some words of a text", encoding="utf-8")
    ended = efrit("estimate", str(file), "--json")
    tokens = estimate("some words of a text")
    assert json.loads(ended.out) == {
        "files": [{"path": str(file), "tokens": tokens}],
        "total": tokens,
    }


def test_a_dash_is_standard_input() -> None:
    ended = efrit("estimate", "-", "--json", stdin="from a pipe")
    assert json.loads(ended.out)["total"] == estimate("from a pipe")


def test_an_empty_file_has_no_tokens(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert efrit("estimate", str(tmp_path / "empty")).out.split()[0] == "0"


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("words", encoding="utf-8")
    ended = efrit("estimate", str(tmp_path / "missing"), str(tmp_path / "there"), str(tmp_path))
    assert ended.code == 1
    assert str(tmp_path / "missing") in ended.err
    assert f"{tmp_path}: Is a directory" in ended.err
    assert "there" in ended.out


def test_bytes_that_are_not_utf8_are_counted_as_they_would_be_shown(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9 \xff\x00" * 5)
    assert efrit("estimate", str(tmp_path / "latin")).code == 0
