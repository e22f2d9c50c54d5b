"""Texts of every kind, made from a kind and a size so that failing examples stay readable."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

KINDS = {
    "lines": "the quick brown fox, line {0} of many\n",
    "one line": "the quick brown fox {0} ",
    "Chinese": "第{0}行的预算与上下文窗口的管理。\n",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈 {0}\n",
    "CRLF": "row {0};a;b;c\r\n",
    "NUL": "a\0b{0}\0\n",
    "JSON": '{{"path": "src/file-{0}.el", "size": {0}}}, ',
    "ruler": "----------------------------------------{0}\n",
    "blank": "   \n\t\n",
    "letters": "{0}x",
}


def make_text(kind: str, size: int) -> str:
    """Return a text of this many characters."""
    pattern, parts, length, number = KINDS[kind], [], 0, 0
    while length < size:
        parts.append(pattern.format(number))
        length += len(parts[-1])
        number += 1
    return "".join(parts)[:size]


@dataclass(frozen=True)
class Kind:
    """The parameters that a text is made from; a failing test shows them instead of the text."""

    kind: str
    size: int

    @property
    def text(self) -> str:
        """The text."""
        return make_text(self.kind, self.size)


SIZES = st.sampled_from([0, 1, 2, 40, 300, 1_500, 6_000, 25_000, 200_000])
KINDS_OF_TEXT = st.builds(Kind, st.sampled_from(sorted(KINDS)), SIZES)
TEXTS = st.builds(make_text, st.sampled_from(sorted(KINDS)), SIZES)
SMALL_TEXTS = st.builds(make_text, st.sampled_from(sorted(KINDS)), st.sampled_from([0, 1, 60, 900]))
