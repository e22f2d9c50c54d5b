"""The files of `elisp/`: how they depend on each other, and on the private parts of others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MADE = "efrit-autoloads"
FILES = {
    file.stem: file.read_text(encoding="utf-8")
    for file in (ROOT / "elisp").glob("*.el")
    if file.stem != MADE
}
MOST_FILES = 30
REQUIRE = re.compile(r"\(require '(efrit[\w-]*)\)")
PRIVATE = re.compile(r"[(']((?!efrit)[a-z][a-z0-9-]*--[a-z0-9-]+)")
# Compared with, not called.
COMPARED = {"revert-buffer-insert-file-contents--default-function"}


def listed() -> list[str]:
    """The files in the order of the table in docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(efrit[\w-]*)` \|", text, re.MULTILINE)


def test_a_file_requires_only_files_above_it_in_the_table() -> None:
    order = listed()
    assert sorted(order) == sorted(FILES)
    assert len(order) <= MOST_FILES
    for name, text in FILES.items():
        below = order[order.index(name) :]
        assert not [other for other in REQUIRE.findall(text) if other in below], name


def test_no_private_function_of_another_package_is_used() -> None:
    used = {name for text in FILES.values() for name in PRIVATE.findall(text)}
    assert used <= COMPARED
