"""docs/soak.md names each test that does less in `make test`, with the numbers of the code."""

from __future__ import annotations

import re

from tests.emacs.batch import ROOT

PAGE = (ROOT / "docs" / "soak.md").read_text(encoding="utf-8")
AMOUNT = re.compile(r"\bamount\(([\d_]+), ([\d_]+)\)")
ALONE = re.compile(r"soak\(alone=True\)")


def _rows() -> set[tuple[str, str, str]]:
    cells = [[cell.strip() for cell in line.split("|")] for line in PAGE.splitlines()]
    return {(row[1], row[3], row[4]) for row in cells if len(row) == 6}


def _number(text: str) -> str:
    return f"{int(text):,}"


def test_each_amount_of_the_code_is_on_the_page() -> None:
    rows = _rows()
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        name = f"`{file.relative_to(ROOT)}`"
        text = file.read_text(encoding="utf-8")
        for few, many in AMOUNT.findall(text):
            assert (name, _number(few), _number(many)) in rows
        assert name in PAGE or not (ALONE.search(text) or re.search(r"\bstride\(", text))


def test_each_lisp_test_of_the_soak_is_on_the_page() -> None:
    tagged = re.compile(r"\(ert-deftest (\S+) \(\)\n(?:  \".*\n)*  :tags '\(:soak\)")
    names = [
        name
        for file in sorted((ROOT / "tests" / "elisp").glob("*-tests.el"))
        for name in tagged.findall(file.read_text(encoding="utf-8"))
    ]
    assert names
    assert all(f"`{name}`" in PAGE for name in names)
