"""Replacing characters that cannot be stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.characters import sound_text


@given(st.text(st.characters()))
def test_a_sound_text_can_be_stored_and_is_otherwise_as_it_was(text: str) -> None:
    sound = sound_text(text)
    sound.encode()
    assert len(sound) == len(text)
    assert all(a == b or "\ud800" <= a <= "\udfff" for a, b in zip(text, sound, strict=True))
