"""Numbers, names and paths beyond every bound get an error that names them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from efrit_budget.errors import EfritError, InternalError
from tests.conversation.client import Client

NUMBERS = (2**63, 2**64, -(2**63) - 1, 10**400)
NAMES = ("a" * 256, "/" + "a" * 300, "a/" * 2_100, "a\0b", "\ud800", "r" + "9" * 30)
TOOLS = ("project_files", "vcs_log", "vcs_show", "vcs_diff", "vcs_blame", "read_file", "file_info")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A session with every tool, in a repository."""
    made = Client(tmp_path_factory.mktemp("values"), configured={"tools.deny": []})
    subprocess.run(["git", "init", "--quiet", str(made.root)], check=True)
    yield made
    made.close()


def refusal(client: Client, method: str, **params: Any) -> str:
    """Return the message of an error; fail if it is an internal one."""
    with pytest.raises(EfritError) as caught:
        client.app.call(method, params)
    assert not isinstance(caught.value, InternalError), caught.value.__cause__
    return caught.value.message


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("turn/end", "turn_id"),
        ("worklog/list", "offset"),
        ("changes/show", "number"),
        ("changes/undo", "number"),
        ("memory/get", "id"),
    ],
)
def test_a_number_that_cannot_be_stored_is_refused_by_name(
    client: Client, method: str, field: str, number: int
) -> None:
    session = {} if method.startswith("memory") else {"session_id": client.session}
    assert field in refusal(client, method, **session, **{field: number})


@pytest.mark.parametrize("name", NAMES)
def test_a_root_that_cannot_be_is_refused_by_name(client: Client, name: str) -> None:
    assert "root" in refusal(client, "session/open", root=name)


@pytest.mark.parametrize("field", ["project", "scope", "kind"])
def test_half_of_a_character_in_a_name_is_refused(client: Client, field: str) -> None:
    assert field in refusal(client, "memory/search", **{field: "\ud800"})


def test_thousands_of_invalid_elements_get_a_short_error(client: Client) -> None:
    said = refusal(client, "memory/search", tags=[1] * 5_000)
    assert "tags.4" in said
    assert "and 4,995 more" in said
    assert len(said) < 10_000


def test_half_of_a_character_in_the_id_of_a_call_is_refused(client: Client) -> None:
    call = {"session_id": client.session, "name": "file_info", "tool_use_id": "\ud800"}
    assert "tool_use_id" in refusal(client, "tools/call", **call)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_cannot_be_is_told_to_the_model(client: Client, tool: str, name: str) -> None:
    given = {"paths": [name]} if tool == "file_info" else {"path": name}
    envelope = client.use(tool, **given)
    assert envelope["status"] == "error" or tool in ("file_info", "vcs_log", "vcs_show", "vcs_diff")
    assert len(envelope["text"]) < 20_000


@pytest.mark.parametrize("pattern", ["a\0b", "\ud800"])
def test_a_pattern_that_no_line_can_match_is_told_to_the_model(
    client: Client, pattern: str
) -> None:
    client.use("file_info", paths=["README.md"])
    envelope = client.use("recall_result", handle="r1", pattern=pattern)
    assert envelope["status"] == "error"
    assert "NUL" in envelope["text"] or "half of a character" in envelope["text"]
