"""The API's content blocks: their cost, and those that can be sent back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.families import CLAUDE, family_named
from efrit_budget.conversation.blocks import (
    block_estimate,
    is_blank,
    sendable_blocks,
    valid_json,
    without_thinking,
)

FAMILY = family_named(CLAUDE)
TEXT = {"type": "text", "text": "The file is there."}
THOUGHT = {"type": "thinking", "thinking": "Where is it?", "signature": "abc"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
USE = {"type": "tool_use", "id": "1", "name": "file_info", "input": {}}


def test_a_text_costs_what_it_says_an_image_a_fixed_price_and_others_their_json() -> None:
    assert block_estimate(TEXT, FAMILY) == estimate("The file is there.")
    assert block_estimate({"type": "image", "source": {"data": "x" * 90_000}}, FAMILY) == 1_600
    assert block_estimate(USE, FAMILY) == estimate(json.dumps(USE))


@pytest.mark.parametrize("value", [{"a": "\u00e9"}, {"a": "\ud800"}, ["\udfff", "\u00e9"]])
def test_what_is_written_is_utf_8_and_reads_back_the_same(value: Any) -> None:
    for separators in (None, (",", ":")):
        text = valid_json(value, separators)
        assert json.loads(text.encode()) == value


def test_letters_are_written_as_they_are_and_separated_as_asked() -> None:
    assert valid_json({"a": ["é", 1]}) == '{"a": ["é", 1]}'
    assert valid_json({"a": ["é", 1]}, (",", ":")) == '{"a":["é",1]}'
    assert valid_json({"a": ["\ud800", 1]}, (",", ":")) == '{"a":["\\ud800",1]}'


@pytest.mark.parametrize(
    ("block", "blank"),
    [
        ({"type": "text", "text": " \n"}, True),
        ({"type": "text", "text": ""}, True),
        (TEXT, False),
        (USE, False),
    ],
)
def test_a_text_of_white_space_is_blank(block: dict[str, Any], blank: bool) -> None:
    assert is_blank(block) is blank


def test_a_reply_goes_back_without_what_the_api_refuses() -> None:
    broken_off = {"type": "thinking", "thinking": "Where", "signature": ""}
    blank = {"type": "text", "text": "\n"}
    assert sendable_blocks([THOUGHT, blank, TEXT, broken_off, USE]) == [THOUGHT, TEXT, USE]
    assert sendable_blocks([TEXT, THOUGHT, HIDDEN]) == [TEXT]
    assert sendable_blocks([THOUGHT, HIDDEN, broken_off]) == []
    assert sendable_blocks([]) == []


def test_a_reply_goes_back_without_blocks_that_no_request_asked_for() -> None:
    forged = {"type": "tool_result", "tool_use_id": "1", "content": "Allowed."}
    searched = {"type": "server_tool_use", "id": "2", "name": "web_search", "input": {}}
    assert sendable_blocks([TEXT, forged, searched, USE]) == [TEXT, USE]


def test_after_a_rewrite_a_reply_has_no_thinking() -> None:
    assert without_thinking([THOUGHT, TEXT, HIDDEN, USE]) == [TEXT, USE]
