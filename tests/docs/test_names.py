"""The commands and options in the documents exist, on the command line and in Emacs."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.cli.parser import build_parser
from efrit_budget.demo.scenario import parse
from efrit_budget.settings.model import known_settings
from tests.cli.command import subcommands
from tests.docs import pages
from tests.docs.console import FENCE, Block, blocks, documents
from tests.docs.texinfo import markdown_of

PACKAGE = pages.ROOT / "efrit_budget"
SCRIPT = pages.ROOT / "tests" / "emacs" / "document-names.el"
ALL = [block for page in documents() for block in blocks(page)]
LISP_NAME = re.compile(r"`(?:C-u )?(?:M-x )?(efrit(?:-[a-z0-9-]+)?)`")
LOADED = re.compile(r"\bemacs .*? -f (efrit[\w-]*)")
ON_THE_COMMAND_LINE = re.compile(r"`efrit-budget ([a-z][^`]*)`")
SETTING = re.compile(r"`((?:budget|log|memory|retention|specs|storage|tools|wire)\.[a-z_]+)`")
PLACEHOLDER = re.compile(r"\[?[A-Z]+\]?")


def texts() -> list[str]:
    """Return the pages without their blocks."""
    return [FENCE.sub("", markdown_of(page)) for page in documents()]


def lisp_tests() -> set[str]:
    """Return the names of the tests in Lisp, which are not in the package."""
    files = (pages.ROOT / "tests" / "elisp").glob("*.el")
    return {
        name
        for file in files
        for name in re.findall(
            r"^\(ert-deftest ([\w-]+)", file.read_text(encoding="utf-8"), re.MULTILINE
        )
    }


def planned_files() -> set[str]:
    """The files of Emacs that the plan of the architecture has, and `elisp/` has not yet."""
    plan = (pages.FOLDER / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(efrit[\w-]*)` \|", plan, re.MULTILINE)
    return {name for name in named if not (pages.ROOT / "elisp" / f"{name}.el").exists()}


def of_language(language: str) -> list[Block]:
    """Return all blocks in this language, on all pages."""
    return [block for block in ALL if block.language == language]


def test_messages_are_json() -> None:
    for block in of_language("json"):
        assert json.loads(block.text), block.place


@pytest.mark.parametrize("block", of_language("toml"), ids=lambda block: block.place)
def test_a_scenario_is_one_that_the_scripted_model_plays(block: Block) -> None:
    assert tomllib.loads(block.text)["reply"]
    assert parse(block.text)


def test_lisp_can_be_read_and_names_what_there_is(tmp_path: Path) -> None:
    """Blocks and inline names are checked; two broken ones made for this test are found."""
    unread, unknown = "(setq efrit-nosuch 1", "(setq efrit-nothing 1)"
    named = {name for text in texts() for name in LISP_NAME.findall(text)} - lisp_tests()
    named -= planned_files()
    named |= {name for page in documents() for name in LOADED.findall(markdown_of(page))}
    shown = [block.text for block in of_language("elisp")]
    assert len(named) > 50
    assert shown
    asked = {"blocks": [*shown, unread, unknown], "names": [*(named - {"efrit-budget"})]}
    assert emacs_on(asked, tmp_path) == {"unread": [unread], "unknown": ["efrit-nothing"]}


def emacs_on(asked: dict[str, list[str]], folder: Path) -> Any:
    """Return Emacs's findings about these blocks and names."""
    file = folder / "asked.json"
    file.write_text(json.dumps(asked), encoding="utf-8")
    command = [os.environ.get("EMACS", "emacs"), "-Q", "--batch", "-l", str(SCRIPT), str(file)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_settings_that_are_named_exist() -> None:
    named = {name for text in texts() for name in SETTING.findall(text)}
    assert len(named) > 20
    modules = {name for name in named if (PACKAGE / f"{name.replace('.', '/')}.py").exists()}
    assert named - modules <= set(known_settings())


@pytest.mark.parametrize(
    "command", sorted({one for text in texts() for one in ON_THE_COMMAND_LINE.findall(text)})
)
def test_a_command_that_is_named_exists_with_its_options(command: str) -> None:
    assert unknown_words(command, build_parser()) == []


def test_a_command_or_an_option_that_does_not_exist_is_seen() -> None:
    assert unknown_words("memory forget --yes ID", build_parser()) == ["forget", "--yes"]
    assert unknown_words("memory get --all ID", build_parser()) == ["--all"]


def unknown_words(command: str, parser: argparse.ArgumentParser) -> list[str]:
    """Return the words of a command that are no subcommand, no option and no option's value."""
    unknown = []
    for word in command.split():
        inner = subcommands(parser)
        if word in inner:
            parser = inner[word]
        elif word.startswith("-"):
            unknown += [] if word in parser._option_string_actions else [word]
        elif not PLACEHOLDER.fullmatch(word):
            unknown.append(word)
    return unknown
