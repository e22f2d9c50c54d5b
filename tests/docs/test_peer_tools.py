"""The table of the peer's tools is complete, and every test it names exists."""

from __future__ import annotations

import re

from efrit_budget.tools.registry import discover
from tests.docs.pages import ROOT
from tests.docs.peer_tools import rows
from tests.docs.tools_page import emacs_tools

PEERS_TOOLS = 41
TEST = re.compile(r"^\(ert-deftest (\S+)", re.MULTILINE)


def test_every_tool_of_the_peer_has_a_row() -> None:
    """No tool stands in two rows."""
    named = [name for row in rows() for name in row.peer]
    assert len(named) == len(set(named)) == PEERS_TOOLS


def test_every_tool_named_beside_the_peers_is_offered() -> None:
    """The sidecar or Emacs offers it."""
    offered = {tool.name for tool in discover()} | {tool["name"] for tool in emacs_tools()}
    assert {name for row in rows() for name in row.ours} <= offered


def test_every_test_named_in_the_table_is_one_that_a_batch_emacs_runs() -> None:
    """The test is defined in tests/elisp, where `run.el` finds it."""
    defined = {
        name
        for file in (ROOT / "tests" / "elisp").glob("*-tests.el")
        for name in TEST.findall(file.read_text(encoding="utf-8"))
    }
    assert {row.test for row in rows()} <= defined
