"""The estimator keeps what it promises, and its figures are near the real ones."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget.estimate import DEAREST, SAMPLE, SLICES, counts, estimate, sample, shape
from efrit_budget.budget.weights import COSTS
from tests.budget.measured import MEASURED

# Everything that Python lets into a str, lone surrogates and nulls included.
ANY_TEXT = st.text(st.characters())
# A letter of most classes, dense enough that runs of all kinds come about.
LIVELY_TEXT = st.text(st.sampled_from("aebqABQ019 \t\n-=.({é語яשع☃"), max_size=SAMPLE // 2 - 1)


class Watched(str):
    """A text that notes which parts of it are read, and refuses to be read whole."""

    __slots__ = ("taken",)

    taken: list[tuple[int, int]]

    def __getitem__(self, key: Any) -> str:
        """The slice asked for, noted."""
        start, stop, step = key.indices(len(self))
        assert step == 1
        self.taken.append((start, stop))
        return super().__getitem__(key)

    def refuse(self, *arguments: object) -> Any:
        """What would go through the whole text."""
        raise AssertionError(arguments)

    __iter__ = __contains__ = translate = count = encode = split = refuse  # type: ignore[assignment]


def watched(text: str) -> Watched:
    """A watched text, nothing read of it yet."""
    found = Watched(text)
    found.taken = []
    return found


@pytest.mark.parametrize("kind", MEASURED)
def test_an_estimate_is_within_fifteen_percent_of_the_real_count(kind: str) -> None:
    tokens, text = MEASURED[kind]
    assert estimate(text) == pytest.approx(tokens, rel=0.15)


def test_the_mean_error_over_the_measured_kinds_is_below_the_bar() -> None:
    misses = [abs(estimate(text) / tokens - 1) for tokens, text in MEASURED.values()]
    assert sum(misses) / len(misses) <= 0.06


@pytest.mark.parametrize("kind", MEASURED)
def test_a_text_repeated_many_times_costs_as_many_times_as_much(kind: str) -> None:
    _, text = MEASURED[kind]
    times = 20_000 // len(text)
    assert estimate(text * times) == pytest.approx(estimate(text) * times, rel=0.1)


def test_an_empty_text_costs_nothing() -> None:
    assert estimate("") == 0


@given(ANY_TEXT)
def test_any_text_costs_at_least_one_token_and_never_more_than_its_bytes_could(text: str) -> None:
    assert min(1, len(text)) <= estimate(text) <= DEAREST * len(text)


@given(ANY_TEXT, st.integers(min_value=1, max_value=20_000))
def test_long_texts_of_any_characters_are_estimated(text: str, times: int) -> None:
    assert estimate(text * times) >= min(1, len(text))


@pytest.mark.parametrize("text", ["\ud800", "\udfff" * 5000, "\x00", "a\x00b" * 4000, "\U0010ffff"])
def test_lone_surrogates_nulls_and_the_last_character_are_texts_like_others(text: str) -> None:
    assert estimate(text) >= 1


@given(ANY_TEXT)
def test_the_same_text_always_costs_the_same(text: str) -> None:
    assert estimate(text) == estimate("".join(list(text)))


@given(LIVELY_TEXT, LIVELY_TEXT)
def test_a_further_line_never_lowers_the_cost_of_a_text_read_whole(text: str, line: str) -> None:
    assert estimate(f"{text}\n{line}") >= estimate(text)


@pytest.mark.parametrize("length", [SAMPLE + 1, 3 * SAMPLE + 7, 100_003, 5_000_000])
def test_of_a_long_text_only_a_few_slices_are_read(length: int) -> None:
    text = watched("ab (c)\n" * (length // 7 + 1))
    estimate(text)
    assert len(text.taken) <= SLICES
    assert sum(stop - start for start, stop in text.taken) <= SAMPLE


@given(st.integers(min_value=SAMPLE + 1, max_value=200_000))
def test_the_slices_are_disjoint_and_reach_from_end_to_end(length: int) -> None:
    text = watched("x" * length)
    sample(text)
    slices = sorted(text.taken)
    assert slices[0][0] == 0
    assert length - slices[-1][1] <= 1
    assert all(stop <= start for (_, stop), (start, _) in pairwise(slices))


def test_a_text_as_long_as_the_sample_is_read_whole() -> None:
    text = "".join(map(chr, range(0x20, 0x20 + SAMPLE)))
    assert sample(text) == text


@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_is_dense_is_noticed_wherever_in_the_text_it_stands(at: int) -> None:
    thirds = ["plain words go here " * 2000] * 3
    plain = estimate("".join(thirds))
    thirds[at] = "9f86d081884c7d659a2f" * 2000
    assert estimate("".join(thirds)) > 1.5 * plain


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("fooBar HTTPServer x", "words", 4),
        ("fooBar HTTPServer x", "capitals", 1),
        ("a1 22 (333)", "numbers after a letter", 1),
        ("a1 22 (333)", "numbers after a space", 1),
        ("a1 22 (333)", "numbers after punctuation", 1),
        ("-" * 80, "rulers", 20),
        ("a\n\n  b \n", "ends of lines", 1),
        ("a\n\n  b \n", "ends of lines after a blank", 1),
        ("a\n\n  b \n", "empty lines", 1),
        ("a  b c", "wide gaps", 1),
        ("Чтение, слово", "Cyrillic", 11),
        ("Чтение, слово", "foreign runs", 2),
        ("тієї", "Cyrillic, not Russian", 3),
        ("的鑫", "common Han", 1),
        ("的鑫", "other Han", 1),
        ("😀\ud83d", "beyond the basic plane", 1),
        ("😀\ud83d", "symbols", 1),
        ("déjà vu", "foreign words", 2),
        ("é one two three four five six seven", "foreign words", 5),
        ("tiếng one two three four five six", "foreign words", 5),
    ],
)
def test_what_is_charged_is_counted_as_its_name_says(text: str, name: str, number: int) -> None:
    assert counts(shape(text))[name] == number


@pytest.mark.parametrize(
    ("characters", "name"),
    [
        ("\u0080\u00bf\u2000\u206f\u3000\u303f\uff00\uffef", "foreign punctuation"),
        ("\u00c0\u024f", "accents"),
        ("\u0370\u03ff\u1f00\u1fff", "Greek"),
        ("\u0400\u040f\u0450\u052f", "Cyrillic, not Russian"),
        ("\u0410\u044f\u0401\u0451", "Cyrillic"),
        ("\u0530\u058f\u0980\u09ff\u0b80\u0dff\u1000\u10ff", "scripts of two bytes"),
        ("\u0590\u05ff", "Hebrew"),
        ("\u0600\u077f", "Arabic"),
        ("\u0780\u08ff\u0a00\u0b7f\u0e80\u0fff", "scripts of three bytes"),
        ("\u1100\u1dff\ua000\uabff", "scripts of three bytes"),
        ("\u0900\u097f", "Devanagari"),
        ("\u0e00\u0e7f", "Thai"),
        ("\u1e00\u1eff", "Vietnamese"),
        ("\u2500\u257f", "box drawing"),
        ("\u3040\u30ff", "kana"),
        ("\u3400\u9fff\uf900\ufaff", "other Han"),
        ("\uac02\ud7af", "other Hangul"),
        ("\u007f\u0250\u036f\u2070\u24ff\u2580\u2fff\u3100\u33ff", "symbols"),
        ("\ud7b0\uf8ff\ufb00\ufeff\ufff0\uffff", "symbols"),
    ],
)
def test_a_script_goes_from_its_first_to_its_last_character(characters: str, name: str) -> None:
    assert counts(shape(characters))[name] == len(characters)


def test_control_characters_are_ends_of_lines_and_other_signs_are_marks() -> None:
    assert shape("\x00\x1f!@}") == b"nnppp"


@pytest.mark.parametrize(
    ("sign", "length", "name"),
    [
        ("e", 15, "fifteen letters"),
        ("E", 12, "twelve capitals"),
        ("7", 2, "two digits"),
        ("7", 3, "three digits"),
        ("7", 4, "four digits"),
        ("7", 6, "six digits"),
        ("7", 12, "twelve digits"),
        ("(", 8, "eight marks"),
        (" ", 16, "sixteen spaces"),
        ("-", 4, "rulers"),
        ("t", 3, "consonants in a row"),
    ],
)
def test_a_run_is_charged_for_from_its_length_on(sign: str, length: int, name: str) -> None:
    assert counts(shape(sign * length))[name] == 1
    assert counts(shape(sign * (length - 1)))[name] == 0


def test_everything_counted_has_a_cost_and_none_is_negative() -> None:
    assert set(COSTS) == set(counts(b""))
    assert min(COSTS.values()) >= 0


def test_the_estimator_needs_no_tokenizer_to_run() -> None:
    code = "import sys, efrit_budget.budget.estimate; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"tokenizers", "tiktoken", "numpy", "transformers", "tests"})
