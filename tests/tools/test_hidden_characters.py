"""Questions make exactly the invisible characters visible."""

from __future__ import annotations

import sys
import unicodedata

from efrit_budget.characters import all_seen


def test_no_character_that_is_not_seen_is_asked_about_as_it_is() -> None:
    unseen = [
        sign
        for sign in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(sign) in {"Cc", "Cf", "Zl", "Zp", "Zs"} and sign not in "\n\t "
    ]
    assert not set(unseen) & set(all_seen("".join(unseen)))
    assert all_seen("größe 漢字 עברית\n\t") == "größe 漢字 עברית\n\t"
