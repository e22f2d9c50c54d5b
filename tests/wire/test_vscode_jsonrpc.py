"""Tests with npm's vscode-jsonrpc, a client that shares no line with this project."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("node")
PINNED = json.loads((FOLDER / "package.json").read_bytes())["dependencies"]["vscode-jsonrpc"]

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None and os.environ.get("CI") != "true",
    reason="there is no node here; CI has it",
)


def _installed_version() -> str | None:
    package = FOLDER / "node_modules" / "vscode-jsonrpc" / "package.json"
    return str(json.loads(package.read_bytes())["version"]) if package.is_file() else None


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with the client installed beside its script; one test process installs it."""
    program = shutil.which("node")
    assert program is not None, "CI needs node"
    with (FOLDER / "package.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _installed_version() != PINNED:
            npm = shutil.which("npm")
            assert npm is not None, "npm is needed to install vscode-jsonrpc"
            flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            subprocess.run([npm, "install", *flags], cwd=FOLDER, check=True, timeout=300)
    assert _installed_version() == PINNED
    return program


@pytest.fixture
def seen(node: str, tools_for_tests: Path, project: Path) -> dict[str, Any]:
    (project / "a.txt").write_text("text\n", encoding="utf-8")
    command = [sys.executable, "-m", "efrit_budget", "serve"]
    done = subprocess.run(
        [node, str(FOLDER / "client.js"), str(project), *command],
        capture_output=True,
        check=False,
        timeout=120,
        cwd=project,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    assert "failure" not in found, found
    return found


def test_an_independent_client_is_served_from_initialize_to_exit(
    seen: dict[str, Any], project: Path
) -> None:
    assert seen["initialize"]["server"]["name"] == "efrit-budget"
    assert seen["session"]["root"] == str(project)
    assert seen["file"]["status"] == "success"
    assert seen["file"]["data"]["files"][0]["path"] == "a.txt"
    assert "📏" in seen["file"]["text"]
    assert seen["waited"]["status"] == "success"
    assert {params["tool_use_id"] for params in seen["progress"]} >= {"use-wait"}
    assert seen["progress"][0]["value"]["message"]
    assert seen["cancelled"]["code"] == -32800
    assert (seen["unknown"]["code"], seen["unknown"]["message"]) == (-32601, "Method not found")
    assert seen["invalid"]["code"] == -32602
    assert {field["field"] for field in seen["invalid"]["data"]["fields"]} >= {"session"}
    assert seen["positional"]["session_id"] == seen["session"]["session_id"]
    assert seen["many"] == ["pong"] * 50
    assert seen["shutdown"] is None
    assert seen["code"] == 0
    assert "error" not in seen
    assert "unhandled" not in seen
    assert seen["stderr"] == ""
