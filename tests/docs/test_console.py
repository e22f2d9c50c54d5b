"""The documents show what the program prints; `console.py` has the rules."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.demo.running import endpoint
from tests.demo.test_binding import SCENARIO, played, without_thinking
from tests.docs.console import (
    LANGUAGES,
    Block,
    blocks,
    commands,
    documents,
    is_as_shown,
    run,
)
from tests.docs.example import make_thesis
from tests.docs.texinfo import markdown_of

ALL = [block for page in documents() for block in blocks(page)]
CONSOLE = [block for block in ALL if block.language == "console"]
SHOWN = "three files\n...\n4 of …, 5 ms ▕▌ ▏\n"


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.place)
def test_a_console_block_shows_what_its_commands_print(block: Block, tmp_path: Path) -> None:
    folder = make_thesis(tmp_path)
    for command, shown in commands(block.text):
        printed = run(command, folder)
        difference = "\n".join(difflib.ndiff(shown.splitlines(), printed.splitlines()))
        assert is_as_shown(shown, printed, numbers_vary=block.numbers_vary), (
            f"{block.place}: $ {command}\n{difference}"
        )


def test_the_refusal_on_the_page_is_what_the_scripted_model_says(tmp_path: Path) -> None:
    [block] = [block for block in ALL if block.language == "output"]
    with endpoint(SCENARIO, tmp_path) as running:
        said = running.post(without_thinking(played(running, 5), 1)).error
    assert is_as_shown(block.text, said)


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block without a language could show output that nothing compares."""
    text = markdown_of(page)
    found = list(blocks(page))
    assert sum(line.lstrip().startswith(("```", "~~~")) for line in text.splitlines()) == 2 * len(
        found
    )
    assert not [block.place for block in found if block.language not in LANGUAGES]
    assert not [
        block.place
        for block in found
        if block.language != "console" and block.text.startswith("$ ")
    ]


@pytest.mark.parametrize(
    ("printed", "numbers_vary"),
    [
        ("three files\n4 of 9, 5 ms ▕▌ ▏", False),
        ("three files\na.md\nb.md\n4 of them all, 5 ms ▕▌ ▏\n", False),
        ("three files\n10 of 1,212, 2.5 s ▕███▏", True),
    ],
)
def test_what_a_block_leaves_open_may_be_anything(printed: str, *, numbers_vary: bool) -> None:
    assert is_as_shown(SHOWN, printed, numbers_vary=numbers_vary)


@pytest.mark.parametrize(
    "printed",
    [
        "three folders\n4 of 9, 5 ms ▕▌ ▏\n",
        "three files\n4 of 9, 5 ms ▕▌ ▏\nmore\n",
        "four\nthree files\n4 of 9, 5 ms ▕▌ ▏\n",
        "three files\n5 of 9, 5 ms ▕▌ ▏\n",
        "three files\n4 of 9\n, 5 ms ▕▌ ▏\n",
    ],
)
def test_other_words_lines_or_numbers_are_not_as_shown(printed: str) -> None:
    assert not is_as_shown(SHOWN, printed)
