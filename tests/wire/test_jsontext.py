"""Tests of strict JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.errors import ParseError
from efrit_budget.wire.jsontext import MAX_DEPTH, parse, serialize

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)


@given(JSON_VALUES)
def test_what_is_serialized_is_parsed_as_the_same_value(value: Any) -> None:
    assert parse(serialize(value)) == value


@given(st.text() | st.lists(st.text()))
def test_a_serialized_text_is_valid_utf8_on_one_line_whatever_it_holds(value: Any) -> None:
    raw = serialize(value)
    assert b"\n" not in raw
    assert json.loads(raw.decode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_parse_error(raw: bytes) -> None:
    try:
        value = parse(raw)
    except ParseError as error:
        assert error.on_the_wire()["message"] == "Parse error"  # noqa: PT017
    else:
        assert parse(serialize(value)) == value


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"NaN", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b'{"a":-Infinity}', "-Infinity is not JSON"),
        (b"1e999", "the number 1e999 is out of range"),
        (b"[-1e999]", "the number -1e999 is out of range"),
        (b'"\\ud800"', "a string holds a lone surrogate"),
        (b'{"\\uDFFF":1}', "a string holds a lone surrogate"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        (b'"\xed\xa0\x80"', "byte 1 is not UTF-8"),
        (b"", "Expecting value at character 0"),
        (b"{'a':1}", "Expecting property name enclosed in double quotes at character 1"),
        (b"[1] 2", "Extra data at character 4"),
        (b'"a\nb"', "Invalid control character at at character 2"),
        (b"9" * 10_000, "a number has too many digits"),
        (b'{"a":1,"a":1}', 'the key "a" stands twice in one object'),
        (b'[{"a":{"b":1,"\\u0062":2}}]', 'the key "b" stands twice in one object'),
        (b"\xef\xbb\xbf{}", "Expecting value at character 0"),
    ],
)
def test_what_is_no_json_is_refused_by_saying_why(raw: bytes, problem: str) -> None:
    with pytest.raises(ParseError, match=re.escape(problem)):
        parse(raw)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_the_text_of_an_escape_is_no_surrogate() -> None:
    assert parse(b'"\\\\ud800"') == "\\ud800"


def test_an_integer_of_many_digits_keeps_them_all() -> None:
    assert parse(b"1" + b"0" * 4000) == 10**4000


@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
@pytest.mark.parametrize("depth", [10_000, 100_000, 1_000_000])
def test_deep_nesting_is_refused_whether_it_ends_or_not(
    begin: bytes, end: bytes, depth: int
) -> None:
    for raw in (begin * depth + b"1" + end * depth, begin * depth):
        with pytest.raises(ParseError):
            parse(raw)


def test_nesting_is_refused_from_one_depth_on_everywhere() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 900, 980, 1000):
        with pytest.raises(ParseError, match="nested more than"):
            parse(b"[" * depth + b"]" * depth)


def test_what_is_wide_is_not_deep() -> None:
    assert parse(b"[" + b"[]," * 100_000 + b"[]]") == [[]] * 100_001


def test_a_number_that_json_cannot_say_is_not_serialized() -> None:
    for value in (math.nan, math.inf, {"a": [-math.inf]}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            serialize(value)
