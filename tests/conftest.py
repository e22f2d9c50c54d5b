"""The fixtures of all tests: a home folder for each test, no network, and a sidecar."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from efrit_budget.project.processes import orphans
from tests import soak
from tests.connection import Connection
from tests.local_sidecar import TOOLS_FOR_TESTS, LocalSidecar
from tests.sidecar import SERVE, Sidecar

soak.load_profile()
# Where the tests run in a shell's background, programs that are started would ignore it, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark random tests for the soak, and skip those that only the soak runs."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("soak")
    if not soak.LENGTH:
        left_out = [item for item in items if _is_for_the_soak_alone(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_for_the_soak_alone(item: pytest.Item) -> bool:
    return any(mark.kwargs.get("alone") for mark in item.iter_markers("soak"))


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary folders for the sidecar and the person."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("EFRIT_BUDGET_HOME", str(folder / "efrit"))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # Each Emacs with a home of its own would compile the same files anew.
    monkeypatch.setenv("EMACS_INHIBIT_AUTOMATIC_NATIVE_COMPILATION", "1")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _guard() -> Iterator[None]:
    """End the shell that guards the commands of this process when all tests have run."""
    yield
    shell = orphans._guard._shell
    if shell is not None and shell.stdin is not None:
        shell.stdin.close()
        shell.wait()


@pytest.fixture
def tools_for_tests(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make every sidecar that is started offer the tools for tests too."""
    monkeypatch.setenv("EFRIT_BUDGET_TOOLS__PATH", json.dumps([str(TOOLS_FOR_TESTS)]))
    return TOOLS_FOR_TESTS


@pytest.fixture
def sidecar(tools_for_tests: Path, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A sidecar with the tools for tests; a process if the test is marked so."""
    mark = request.node.get_closest_marker("process")
    if mark is None:
        running: Sidecar | LocalSidecar = LocalSidecar()
    else:
        running = Sidecar(command=SERVE if mark.kwargs.get("fresh") else None)
    with running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder to open sessions on."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def session(sidecar: Connection, project: Path) -> str:
    """A session of `sidecar` on `project`."""
    opened = sidecar.request("session/open", root=str(project))
    return str(opened["session_id"])


@pytest.fixture
def log_file(home: Path) -> Path:
    """The log file of this test's sidecars."""
    return home / "efrit" / "log" / "efrit-budget.log"
