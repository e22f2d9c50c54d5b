"""The links in the documents lead to something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import BLOCK, FOLDER, ROOT
from tests.docs.texinfo import markdown_of, sources

DOCUMENTS = [ROOT / "README.md", *sorted(FOLDER.glob("*.md"))]
TARGETS = set(
    re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    """All links are relative."""
    links = re.findall(r"\]\(([^)#]+)", BLOCK.sub("", document.read_text(encoding="utf-8")))
    assert not [link for link in links if not (document.parent / link).exists()]


@pytest.mark.parametrize("document", [*DOCUMENTS, *sources()], ids=lambda path: path.name)
def test_every_make_command_that_is_named_exists(document: Path) -> None:
    """Each `make` command is a target of the Makefile."""
    named = re.findall(r"(?:`|^)make ([a-z]+)(?:`|$)", markdown_of(document), re.MULTILINE)
    assert not set(named) - TARGETS


def test_the_readme_names_every_document() -> None:
    """A reader finds every document from the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [page.name for page in FOLDER.glob("*.md") if f"(docs/{page.name})" not in readme]
