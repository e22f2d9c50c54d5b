"""The items of JSON texts, and replies as they are recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from efrit_budget.gateway.bodies import recorded
from efrit_budget.gateway.child import ChildServer
from efrit_budget.gateway.configuration import entry_of
from efrit_budget.gateway.json_items import item_offsets
from efrit_budget.gateway.offers import Choice, first_sentence, offered_name, short_schema

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.lists(VALUES, min_size=2), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_items_are_the_elements_of_a_list(elements: list[Any], indent: Any, within: bool) -> None:
    value = {"x": "[", "rows": elements, "y": {"rows": []}} if within else elements
    text = json.dumps(value, indent=indent)
    offsets = item_offsets(text)
    decode = json.JSONDecoder().raw_decode
    assert [decode(text[at:].lstrip(" \t"))[0] for at in offsets] == elements


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain words", "[1]", "{}", "[1, 2", "[1 2]", "[1, 2] and more", '{"a" [1, 2]}'),
        *("{1: [1, 2]}", '{"a": [1, 2],', "[" * 100_000, "17", '"[1, 2]"'),
    ],
)
def test_a_text_of_another_form_has_no_items(text: str) -> None:
    assert item_offsets(text) == []


def texts(*given: str) -> list[ContentBlock]:
    """Return blocks of text."""
    return [TextContent(type="text", text=each) for each in given]


@pytest.mark.parametrize(
    ("given", "structured"),
    [
        (['{"a": 1}'], {"a": 1}),
        (["plain words"], {"content": "plain words"}),
        (["[1, 2]"], {"result": [1, 2]}),
        (['{"a": 1}', "two"], {"result": [{"a": 1}, "two"]}),
        (["one", "two"], {"text": "one\ntwo"}),
    ],
)
def test_structured_content_that_the_text_says_is_not_repeated(
    given: list[str], structured: Any
) -> None:
    result = CallToolResult(content=texts(*given), structured_content=structured)
    assert recorded(result).text == "\n".join(given)


def test_structured_content_that_says_more_is_added() -> None:
    result = CallToolResult(content=texts("2 found"), structured_content={"rows": [1, 2]})
    assert recorded(result).text == '2 found\n{"rows": [1, 2]}'


def test_resources_are_texts_or_are_named() -> None:
    content: list[ContentBlock] = [
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="a:b", text="inside")),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(uri="a:c", blob="AAAA", mime_type="a/zip"),
        ),
        ResourceLink(type="resource_link", uri="a:d", name="d", description="a link"),
    ]
    assert recorded(CallToolResult(content=content)).text.splitlines() == [
        "inside",
        "[resource a:c, a/zip, 3 bytes, not shown]",
        "[resource a:d d: a link]",
    ]


def test_a_reply_without_anything_is_an_empty_text() -> None:
    empty = recorded(CallToolResult(content=[]))
    assert (empty.text, empty.items) == ("", [])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Count things. Slowly.", "Count things"),
        ("Read v1.2 of a file.\nArgs: x", "Read v1.2 of a file"),
        ("\n  Two\n  lines", "Two"),
        ("", ""),
        ("x" * 500, "x" * 160 + "…"),
    ],
)
def test_a_short_description_is_the_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_a_short_schema_keeps_names_types_and_choices() -> None:
    """An argument may be called like a keyword."""
    schema = {
        "type": "object",
        "title": "Arguments",
        "properties": {
            "title": {"type": "string", "description": "A title"},
            "kind": {"enum": ["a", "b"], "default": "a"},
            "list": {"type": "array", "items": {"type": "integer", "description": "One"}},
        },
        "required": ["title"],
    }
    assert short_schema(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "list": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["title"],
    }


def test_offered_names_are_such_as_every_api_takes() -> None:
    assert offered_name("my", "a.b/c d") == "my__a_b_c_d"
    assert len(offered_name("my", "x" * 200)) == 64


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"type": 7, "properties": {"a": True}}])
def test_a_schema_that_is_wrong_is_offered_with_our_arguments(
    schema: dict[str, Any], *, short: bool
) -> None:
    child = ChildServer(entry_of("my=server"), 1)
    tool = Tool(name="do", input_schema=schema)
    (offer,) = Choice(short=short).offers(child, [tool])
    assert offer.offered.name == "my__do"
    assert offer.offered.input_schema["type"] == "object"
    assert {"max_tokens", "session"} <= offer.offered.input_schema["properties"].keys()
