"""The estimator keeps what it promises, and its figures are near the real ones."""

from __future__ import annotations

import statistics
import subprocess
import sys
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.budget import weights
from efrit_budget.budget.estimate import (
    BLOCK,
    DEAREST,
    SAMPLE,
    cost,
    estimate,
    foreign_classes,
    sample,
    sampled,
)
from efrit_budget.budget.shapes import Pairs
from efrit_budget.budget.words import divided
from tests.budget.measured import MEASURED

# Everything that Python lets into a str, lone surrogates and nulls included.
ANY_TEXT = st.text(st.characters())
# A letter of most classes, dense enough that runs of all kinds come about.
LIVELY_TEXT = st.text(st.sampled_from("aebqABQ019 \t\n-=.({é語яשع☃"), max_size=SAMPLE // 2 - 1)


@pytest.mark.parametrize("kind", MEASURED)
def test_an_estimate_is_within_two_tokens_and_fifteen_percent_of_the_real_count(kind: str) -> None:
    tokens, text = MEASURED[kind]
    assert abs(estimate(text) - tokens) <= 2 + 0.15 * tokens


def test_the_mean_error_over_the_measured_kinds_is_below_the_bar() -> None:
    misses = [abs(estimate(text) / tokens - 1) for tokens, text in MEASURED.values()]
    assert sum(misses) / len(misses) <= 0.06


@pytest.mark.parametrize("kind", MEASURED)
def test_a_text_repeated_many_times_costs_as_many_times_as_much(kind: str) -> None:
    _, text = MEASURED[kind]
    times = 20_000 // len(text)
    assert estimate(text * times) == pytest.approx(estimate(text) * times, rel=0.15)


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


@pytest.mark.parametrize("kind", MEASURED)
def test_a_long_text_is_estimated_as_its_parts_are(kind: str) -> None:
    """Blocks are counted one by one, so all but the last can be remembered."""
    _, text = MEASURED[kind]
    long = text * (3 * BLOCK // len(text))
    for end in ("", "\n", "  \n\n  x", "\n📏 ~123 tokens"):
        assert estimate(long + end) == pytest.approx(1 + cost(long + end), rel=0.005)


def test_a_text_as_long_as_the_sample_is_counted_whole() -> None:
    text = "".join(map(chr, range(0x20, 0x20 + SAMPLE)))
    assert sample(text) == text
    assert sampled(text) == estimate(text)


@pytest.mark.parametrize("length", [SAMPLE + 1, 3 * SAMPLE + 7, 100_003, 5_000_000])
def test_a_sample_of_a_long_text_is_short(length: int) -> None:
    assert SAMPLE // 2 < len(sample("x" * length)) <= SAMPLE


def test_nobody_can_foresee_where_a_sample_looks() -> None:
    text = "".join(map(chr, range(0x4E00, 0x9000)))
    assert len({sample(text) for _ in range(10)}) == 10


@pytest.mark.parametrize("kind", MEASURED)
def test_a_sample_is_near_the_whole_of_a_text_of_one_kind(kind: str) -> None:
    _, text = MEASURED[kind]
    long = text * (100_000 // len(text))
    found = statistics.median(sampled(long) for _ in range(9))
    assert found == pytest.approx(estimate(long), rel=0.15)


@pytest.mark.parametrize("dense", ["9f86d081884c7d659a2f", "ꔀꕉ", "Ж҂ҙ", "q~zX|"])
def test_what_is_dense_counts_wherever_it_stands(dense: str) -> None:
    """The text is blank in the places that a sample of sixteen even slices would read."""
    size = 60_000
    text = list((dense * size)[:size])
    whole = estimate("".join(text))
    for at in range(16):
        start = at * (size - 128) // 15
        text[start : start + 128] = "\n" * 128
    assert estimate("".join(text)) > 0.9 * whole


@pytest.mark.parametrize(
    ("text", "unknown", "pieces"),
    [
        ("the window is full", b"", 0),
        ("getString(", b"", 1),
        ("zqxv the", b" zqxv", 0),
        ("a zqxv", b" _zqxv", 0),
        ("    return x_qjzk", b" qjzk", 0),
    ],
)
def test_words_that_are_no_token_are_taken_apart(text: str, unknown: bytes, pieces: int) -> None:
    words = divided(text.encode())
    assert (words.rest, words.pieces) == (unknown, pieces)


@pytest.mark.parametrize(
    ("text", "words", "letters"),
    [
        ("the window is full", 4, 15),
        ("  the zqxv  ", 1, 3),
        ("getString(", 2, 9),
        ("12 + 3 é", 0, 0),
    ],
)
def test_known_words_and_their_letters_are_counted(text: str, words: int, letters: int) -> None:
    assert divided(text.encode()).count_known() == (words, letters)


@given(st.text(st.sampled_from("aЖя«—é中😀\ud800 \n")))
def test_characters_have_the_classes_of_the_table_however_many_pages_they_are_of(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    kept = " " if {"Ж", "я"} & set(text) else ""
    foreign = "".join(each for each in text if not each.isascii() or each == kept)
    expected = foreign.translate(weights.CHARACTERS).encode("latin-1", "replace")
    assert foreign_classes(raw) == expected


def test_a_pair_costs_what_its_tables_say_by_their_bits() -> None:
    first, second = bytearray(256), bytearray(256)
    first[ord("a")], second[ord("b")] = 1 << 4, 2
    eighths, rest = bytearray(256), bytearray(256)
    eighths[0x12], rest[0x12] = 0b111, 0b11
    pairs = Pairs(bytes(first), bytes(second), bytes(eighths), bytes(rest))
    assert pairs.cost(b"xabab") == 2 * (3 / 8 + 2 / 64)
    assert pairs.cost(b"a") == pairs.cost(b"") == 0


@pytest.mark.parametrize("character", ["ꔀ", "\ue123", "ﷺ", "㌀", "\U0002a000", "ඞ"])
def test_a_character_of_several_tokens_costs_them(character: str) -> None:
    tokens = {"ꔀ": 3, "\ue123": 3, "ﷺ": 15, "㌀": 3, "\U0002a000": 3, "ඞ": 2}[character]
    assert tokens * 500 / 1.2 <= estimate(character * 500) <= tokens * 500 * 1.4


@pytest.mark.parametrize(
    ("unit", "tokens"),
    [("ь ", 2), ("ЛЛ ", 3), ("йфи ", 4), ("&@#,\n", 4), ("62\n", 2), ("ln[0", 3), ("漞 ", 3)],
)
def test_what_comes_again_and_again_costs_its_tokens_each_time(unit: str, tokens: int) -> None:
    assert tokens * 500 / 1.2 <= estimate(unit * 500) <= tokens * 500 * 1.4


@pytest.mark.parametrize("unit", ["-", "=", "─", " ", "- ", "the ", "the end of it "])
def test_what_is_cheap_stays_cheap_however_often_it_comes(unit: str) -> None:
    assert estimate(unit * 500) <= 520 * max(1, len(unit.split()))


@pytest.mark.parametrize(
    ("mark", "tokens"), [("/", 63), ("─", 250), ("━", 2000), ("▀", 500), ("▓", 4000)]
)
def test_a_drawn_out_line_costs_its_tokens_at_least(mark: str, tokens: int) -> None:
    assert estimate(mark * 2000) >= tokens / 1.2


def test_a_letter_and_its_mark_cost_what_both_cost_as_one_character() -> None:
    text = "Tuyên ngôn toàn thế giới về nhân quyền của Liên Hợp Quốc\n" * 3
    assert estimate(normalize("NFD", text)) == estimate(text)


def test_marks_without_end_are_counted_too() -> None:
    assert 50_000 < estimate("a" + "\u0316\u0300" * 100_000) < 900_000


def test_the_estimator_needs_no_tokenizer_to_run() -> None:
    code = "import sys, efrit_budget.budget.estimate; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"tokenizers", "tiktoken", "numpy", "transformers", "tests"})
