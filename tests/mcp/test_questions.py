"""Questions to the person, by elicitation in both versions of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.client import Client
from mcp_types import ElicitResult, InputRequiredResult

from efrit_budget.app import Application
from efrit_budget.mcp_server.server import McpServer, Options
from tests.mcp.clients import MODERN, Action, Person, converse, text_of


@pytest.fixture
def server(application: Application, project: Path) -> McpServer:
    """An MCP server on an empty project."""
    return McpServer(application, project, Options("k7m2"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file that the tool `asks` writes if the person agrees."""
    return tmp_path / "written"


def test_a_call_runs_once_the_person_agrees(server: McpServer, protocol: str, file: Path) -> None:
    person = Person("accept")

    async def scenario(client: Client) -> None:
        result = await client.call_tool("asks", {"file": str(file)})
        assert not result.is_error
        assert text_of(result).startswith("written\n")

    converse(server, protocol, scenario, elicitation_callback=person.answer)
    assert person.questions == [f"Write into {file}?"]
    assert file.read_text(encoding="utf-8") == "ran\n"


@pytest.mark.parametrize(
    ("action", "reason"),
    [("decline", "the person said no"), ("cancel", "the question was left unanswered")],
)
def test_a_call_does_not_run_if_the_person_does_not_agree(
    server: McpServer,
    protocol: str,
    file: Path,
    action: Action,
    reason: str,
    application: Application,
) -> None:
    async def scenario(client: Client) -> None:
        result = await client.call_tool("asks", {"file": str(file)})
        assert result.is_error
        assert f"asks was not run: {reason}" in text_of(result)

    converse(server, protocol, scenario, elicitation_callback=Person(action).answer)
    (entry,) = application.call("worklog/list", {"session_id": "k7m2"})["entries"]
    assert (entry["tool"], entry["status"]) == ("asks", "error")
    assert not file.exists()


def test_without_elicitation_the_reason_is_given(
    server: McpServer, protocol: str, file: Path
) -> None:
    async def scenario(client: Client) -> None:
        result = await client.call_tool("asks", {"file": str(file)})
        assert result.is_error
        assert f"(it has no elicitation): Write into {file}?" in text_of(result)

    converse(server, protocol, scenario)
    assert not file.exists()


def test_an_answer_to_another_question_is_no_consent(
    server: McpServer, file: Path, tmp_path: Path
) -> None:
    """The state that a client sends back belongs to one call with its arguments."""
    other = tmp_path / "other"

    async def scenario(client: Client) -> None:
        session = client.session
        asked = await session.call_tool("asks", {"file": str(file)}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        again = await session.call_tool(
            "asks",
            {"file": str(other)},
            input_responses={"consent": ElicitResult(action="accept")},
            request_state=asked.request_state,
            allow_input_required=True,
        )
        assert isinstance(again, InputRequiredResult)

    converse(server, MODERN, scenario, elicitation_callback=Person("accept").answer)
    assert not other.exists()
