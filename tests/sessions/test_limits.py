"""Tests of the limits of a session: those it opens with, and other ones later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connection import Connection, RpcError

INVALID = -32602


def _open(sidecar: Connection, root: Path, **params: Any) -> dict[str, Any]:
    opened: dict[str, Any] = sidecar.request("session/open", root=str(root), **params)
    return opened


def _refused(sidecar: Connection, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        sidecar.request(method, **params)
    return caught.value


def _tiers(budget: dict[str, Any]) -> dict[str, int]:
    return {name: tier["limit"] for name, tier in budget["tiers"].items()}


def _change(sidecar: Connection, **limits: Any) -> dict[str, Any]:
    changed: dict[str, Any] = sidecar.request("session/limits", session_id="mine", limits=limits)
    return changed


# Of a new session


def test_tiers_scale_with_the_total(sidecar: Connection, project: Path) -> None:
    budget = _open(sidecar, project, limits={"total": 200_000})["budget"]
    assert budget["tiers"]["tool_results"]["limit"] == 80_000
    assert budget["total"] == 200_000


def test_tiers_may_be_set_one_by_one(sidecar: Connection, project: Path) -> None:
    budget = _open(sidecar, project, limits={"tool_results": 30_000, "history": 0})["budget"]
    limits = _tiers(budget)
    assert (limits["tool_results"], limits["history"], limits["system"]) == (30_000, 0, 8_000)


@pytest.mark.parametrize("total", [1_000, 1_001, 1_337, 99_999, 10_000_000])
def test_whatever_the_total_the_tiers_fill_it_exactly(
    sidecar: Connection, project: Path, total: int
) -> None:
    budget = _open(sidecar, project, limits={"total": total})["budget"]
    assert sum(tier["limit"] for tier in budget["tiers"].values()) == total


def test_the_smallest_budget_still_runs_a_tool(sidecar: Connection, project: Path) -> None:
    session = _open(sidecar, project, limits={"total": 1_000})["session_id"]
    for number in range(60):
        done = sidecar.request(
            "tools/call",
            session_id=session,
            name="wait",
            arguments={"seconds": 0},
            tool_use_id=f"use-{number}",
        )
        assert done["status"] == "success"
        assert "📏" in done["text"]
    assert sidecar.request("session/status", session_id=session)["budget"]["remaining"] >= 0


@pytest.mark.parametrize(
    "limits",
    [
        {"tool_results": 99_000},
        {"total": 50_000, "response": 50_001},
        {"total": 1_000, "system": 500, "history": 501},
    ],
)
def test_limits_that_do_not_fit_are_refused_with_the_sum(
    sidecar: Connection, project: Path, limits: dict[str, int]
) -> None:
    error = _refused(sidecar, "session/open", root=str(project), limits=limits)
    assert error.code == INVALID
    assert "more than the total" in error.told
    assert sidecar.request("session/list", root=str(project))["sessions"] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("total", 999),
        ("total", 0),
        ("total", -1),
        ("total", 10**400),
        ("total", 1.5),
        ("total", "many"),
        ("history", -1),
        ("per_tool_default", 0),
        ("unknown", 5),
    ],
)
def test_a_limit_out_of_range_is_refused_by_name(
    sidecar: Connection, project: Path, name: str, value: Any
) -> None:
    error = _refused(sidecar, "session/open", root=str(project), limits={name: value})
    assert error.code == INVALID
    assert error.data["fields"][0]["field"] == f"limits.{name}"


# Other limits of a session


def test_other_limits_of_a_session_hold_at_once_and_the_rest_stay(
    sidecar: Connection, project: Path
) -> None:
    _open(sidecar, project, session_id="mine", limits={"per_tool_default": 4_000})
    changed = _change(sidecar, per_tool={"run_command": 900}, total=50_000)
    assert changed["session_id"] == "mine"
    assert changed["budget"]["total"] == 50_000
    assert _tiers(changed["budget"])["tool_results"] == 20_000, "the tiers follow the total"
    status = sidecar.request("session/status", session_id="mine")
    assert (status["limits"], status["budget"]) == (changed["limits"], changed["budget"])
    assert (changed["limits"]["per_tool_default"], changed["limits"]["total"]) == (4_000, 50_000)
    again = _change(sidecar, total=100_000, per_tool={"web_fetch": 700})["limits"]
    assert again["per_tool"] == {"run_command": 900, "web_fetch": 700}
    assert {name: again[name] for name in ("system", "response")} == {
        "system": 8_000,
        "response": 30_000,
    }


def test_tiers_that_were_chosen_keep_their_shares_of_another_total(
    sidecar: Connection, project: Path
) -> None:
    _open(sidecar, project, session_id="mine", limits={"tool_results": 30_000, "history": 22_000})
    tiers = _tiers(_change(sidecar, total=50_000)["budget"])
    assert (tiers["tool_results"], tiers["history"], tiers["system"]) == (15_000, 11_000, 4_000)
    tiers = _tiers(_change(sidecar, history=1_000)["budget"])
    assert (tiers["tool_results"], tiers["history"]) == (15_000, 1_000)


@pytest.mark.parametrize(
    ("limits", "field", "words"),
    [
        ({"history": 30_000}, "limits", "history 30,000"),
        ({"tool_results": 60_000, "total": 50_000}, "limits", "tool_results 60,000"),
        ({"total": 999}, "limits.total", "1000"),
        ({"user_message": -1}, "limits.user_message", "0"),
        ({"per_tool": {"run_command": 1}}, "limits.per_tool.run_command", "50"),
        ({"unknown": 5}, "limits.unknown", ""),
    ],
)
def test_other_limits_that_do_not_fit_are_refused_by_name_and_nothing_changes(
    sidecar: Connection, project: Path, limits: dict[str, Any], field: str, words: str
) -> None:
    _open(sidecar, project, session_id="mine")
    error = _refused(sidecar, "session/limits", session_id="mine", limits=limits)
    assert error.code == INVALID
    assert error.data["fields"][0]["field"] == field
    assert words in error.told
    assert sidecar.request("session/status", session_id="mine")["limits"]["total"] == 100_000
