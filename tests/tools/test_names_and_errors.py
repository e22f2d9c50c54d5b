"""The names allowed for a client's tools, the codes of errors, and missing programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from efrit_budget.errors import EfritError
from efrit_budget.project.search import ripgrep
from tests.connection import Connection, RpcError

INVALID = -32602


def _open(sidecar: Connection, root: Path, **params: Any) -> dict[str, Any]:
    opened: dict[str, Any] = sidecar.request("session/open", root=str(root), **params)
    return opened


# Without rg


def test_without_rg_only_the_tools_that_search_fail_and_say_so(
    sidecar: Connection, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(**_: bool) -> Path:
        raise ripgrep.NoRipgrepError("rg is missing: install it")

    monkeypatch.setattr(ripgrep, "find", missing)
    (project / "a.txt").write_text("text\n", encoding="utf-8")
    _open(sidecar, project, session_id="mine")
    status = {
        name: sidecar.request(
            "tools/call", session_id="mine", name=name, arguments=arguments, tool_use_id=name
        )
        for name, arguments in (
            ("mem_stats", {}),
            ("read_file", {"path": "a.txt"}),
            ("search_content", {"pattern": "text"}),
        )
    }
    assert status["mem_stats"]["status"] == status["read_file"]["status"] == "success"
    assert status["search_content"]["status"] == "error"
    assert "rg is missing" in status["search_content"]["message"]


# Names and codes


@pytest.mark.parametrize("name", ["mcp__Server-1__Do", "A" * 128, "9", "_x-"])
def test_a_client_may_register_any_name_that_the_api_takes(
    sidecar: Connection, project: Path, name: str
) -> None:
    _open(sidecar, project, session_id="mine")
    tool = {"name": name, "description": "Do it.", "input_schema": {"type": "object"}}
    told = sidecar.request("tools/register", session_id="mine", tools=[tool])
    assert told["registered"] == [name]


@pytest.mark.parametrize("name", ["", "a b", "A" * 129, "ü", "a\n"])
def test_a_name_that_the_api_refuses_is_refused(
    sidecar: Connection, project: Path, name: str
) -> None:
    _open(sidecar, project, session_id="mine")
    tool = {"name": name, "description": "Do it.", "input_schema": {"type": "object"}}
    with pytest.raises(RpcError) as caught:
        sidecar.request("tools/register", session_id="mine", tools=[tool])
    assert caught.value.code == INVALID


def test_each_code_of_an_error_means_one_thing() -> None:
    def below(kind: type[EfritError]) -> list[type[EfritError]]:
        return [kind, *(each for child in kind.__subclasses__() for each in below(child))]

    own = [kind.code for kind in below(EfritError)[1:] if "code" in vars(kind)]
    assert len(own) == len(set(own))
