"""Calls that a small model writes as text come through as they are, with all their mistakes."""

from __future__ import annotations

import pytest

from tests.servers.model.spoken import Call, Spoken


def heard(text: str, size: int) -> tuple[str, list[Call]]:
    """Return the text and the calls of a reply that comes in pieces."""
    spoken = Spoken()
    said = [spoken.hear(text[at : at + size]) for at in range(0, len(text), size)]
    rest, calls = spoken.finish()
    return "".join(said) + rest, calls


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("reply", "text", "calls"),
    [
        ("No call, but a < b {here}.", "No call, but a < b {here}.", []),
        ("It is <tool_call>nothing", "It is <tool_call>nothing", []),
        (
            'I look. <tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>',
            "I look. ",
            [Call("read_file", '{"path": "a"}')],
        ),
        (
            '{ "name": "conjure", "parameters": {}} and {"name": "read_file"}',
            "",
            [Call("conjure", "{}"), Call("read_file", "{}")],
        ),
        (
            '<tool_call>{"name": "read_file", "arguments": {"path": "a.t</tool_call>',
            "",
            [Call("read_file", '{"path": "a.t')],
        ),
        (
            '<tool_call>{"name": "read_file", "arguments": README.md}',
            "",
            [Call("read_file", "README.md}")],
        ),
    ],
)
def test_what_names_something_is_a_call_and_the_rest_is_text(
    reply: str, text: str, calls: list[Call], size: int
) -> None:
    assert heard(reply, size) == (text, calls)
