"""The characters that are made visible in questions are those that are not seen."""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from pathlib import Path

from efrit_budget.tools.catalog.run_command import HIDDEN, visible

ROOT = Path(__file__).parents[2]


def test_no_character_that_is_not_seen_is_asked_about_as_it_is() -> None:
    unseen = [
        sign
        for sign in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(sign) in {"Cc", "Cf", "Zl", "Zp", "Zs"} and sign not in "\n\t "
    ]
    assert not set(unseen) & set(visible("".join(unseen)))
    assert visible("größe 漢字 עברית\n\t") == "größe 漢字 עברית\n\t"


def test_emacs_makes_the_same_characters_visible() -> None:
    source = (ROOT / "elisp" / "efrit-permissions.el").read_text(encoding="utf-8")
    definition = source.partition("(defconst efrit-permissions-hidden-characters")[2]
    strings = re.findall(r'"([^"]*)"', definition.partition('"Characters')[0])
    assert ast.literal_eval(f'"{"".join(strings)}"') == HIDDEN.pattern
