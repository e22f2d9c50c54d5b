"""`docs/protocol.md`: its requests are sent to a real sidecar, and the replies compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import efrit_budget.app
from efrit_budget.errors import EfritError
from efrit_budget.settings.load import load
from efrit_budget.wire.lifecycle import CANCEL, INITIALIZE, Lifecycle
from tests.docs import pages
from tests.docs.protocol_page import (
    FROM_THE_SERVER,
    conversations,
    differences,
    hold,
    varying,
)

PAGE = pages.read("protocol.md")
METHOD_PARTS = {part.heading.strip("`"): part for part in pages.parts(PAGE, 3)}


def methods() -> dict[str, list[str]]:
    """Return every method a sidecar has, with the names of its params."""
    application = efrit_budget.app.open_application(load())
    try:
        found = {
            method.name: list(method.params.model_fields) for method in application.methods.values()
        }
    finally:
        application.close()
    own: dict[str, list[str]] = {name: [] for name in [*Lifecycle().methods(), CANCEL]}
    return found | own | {INITIALIZE: ["client", "protocol_version"], CANCEL: ["id", "tool_use_id"]}


@pytest.mark.parametrize("conversation", conversations(PAGE), ids=lambda part: part.heading)
def test_a_conversation_of_the_page_goes_as_it_is_shown(
    conversation: pages.Part, tmp_path: Path
) -> None:
    """Each part of the second level is one connection, and each of its replies is compared."""

    def compare(page: Any, real: Any) -> None:
        found = "\n".join(differences(page, real, varying(PAGE)))
        advice = "run: python -m tests.docs.protocol_page, and look at what it changed"
        shown = json.dumps(real, ensure_ascii=False, indent=2)
        assert not found, f"{found}\n{advice}; the whole reply is:\n{shown}"

    hold(conversation, tmp_path, compare)


def test_every_method_of_the_sidecar_stands_in_the_page_and_the_other_way_round() -> None:
    """Each method is a heading of the third level."""
    real, documented = set(methods()), set(METHOD_PARTS) - FROM_THE_SERVER
    assert not real - documented, "methods that docs/protocol.md lacks"
    assert not documented - real, "methods in docs/protocol.md that the sidecar lacks"


def test_every_method_is_shown_with_a_request_below_its_heading() -> None:
    """Every method is therefore really called here."""
    sent = {
        name
        for name, part in METHOD_PARTS.items()
        for block in part.blocks("json")
        if f'"{name}"' in block
    }
    assert not set(methods()) - sent, "methods without a request in docs/protocol.md"


def test_every_parameter_of_a_method_is_named_below_its_heading() -> None:
    """The names stand in backquotes."""
    lacking = {
        f"{name}: {field}"
        for name, fields in methods().items()
        for field in fields
        if name in METHOD_PARTS and f"`{field}`" not in METHOD_PARTS[name].text
    }
    assert not lacking, "parameters that docs/protocol.md lacks"


def error_codes(error: type[EfritError] = EfritError) -> Iterator[int]:
    """Yield the codes of an error and of those derived from it."""
    yield error.code
    for derived in error.__subclasses__():
        yield from error_codes(derived)


def test_the_table_of_errors_has_every_code_that_an_error_carries() -> None:
    """The table has no other codes."""
    documented = re.findall(r"^\| `(-\d+)` \|", PAGE, re.MULTILINE)
    assert sorted(set(error_codes()), reverse=True) == [int(code) for code in documented]


def test_what_the_page_says_varies_stands_in_its_replies() -> None:
    """Each varying member occurs in one of the replies."""
    shown = "".join(pages.Part("", PAGE).blocks("json"))
    assert not [name for name in varying(PAGE) if f'"{name}": ' not in shown]


def test_a_reply_in_other_words_is_a_difference_and_one_with_other_numbers_is_none() -> None:
    """Numbers may differ in varying members only."""
    page = {"text": "2 files, ~30 tokens", "total": 2}
    assert not [*differences(page, {"text": "3 files, ~41 tokens", "total": 2}, {"text"})]
    assert [*differences(page, {"text": "2 folders, ~30 tokens", "total": 2}, {"text"})]
    assert [*differences(page, {"text": "2 files, ~30 tokens", "total": 3}, {"text"})]
