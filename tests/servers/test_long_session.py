"""A session of sixty turns is the same with every server, in both APIs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local_sidecar import LocalSidecar
from tests.processes import until
from tests.servers.aimock import aimock, fixture
from tests.servers.driving import PATHS, Api, Server, emacs
from tests.servers.litellm import Proxy
from tests.servers.long_session import (
    TASK,
    TURNS,
    Outcome,
    check_prefixes,
    played,
    results_without_model,
    scenario,
    write_project,
)
from tests.servers.scripted import scripted

UNGUARDED = {"efrit-max-dollars": "nil", "efrit-max-tokens": "nil"}

pytestmark = [
    pytest.mark.soak(alone=True),
    pytest.mark.parametrize("api", ["messages", "chat"]),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the long session, which changes nothing in it."""
    root = tmp_path_factory.mktemp("book")
    write_project(root)
    return root


@pytest.fixture(scope="module")
def results(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A digest of each result that the session has to store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EFRIT_BUDGET_HOME", str(tmp_path_factory.mktemp("home")))
        with LocalSidecar() as sidecar:
            return results_without_model(sidecar, project)


def play(server: Server, project: Path, folder: Path) -> Outcome:
    """Have Emacs work through the session with a server."""
    with emacs(folder / "emacs") as running:
        running.begin(project, {**server.options(), **UNGUARDED})
        return Outcome(running.say(TASK), running.stored(), running.sent())


def test_sixty_turns_with_the_scripted_model_lose_nothing(
    api: Api, project: Path, results: dict[str, str], tmp_path: Path
) -> None:
    with scripted(scenario(), tmp_path / "model") as model:
        outcome = play(Server(model.url, api), project, tmp_path)
    outcome.check(results)
    assert [line["status"] for line in model.asked()] == [200] * TURNS


@pytest.mark.parametrize("behind", ["messages", "chat"])
def test_sixty_turns_through_litellm_lose_nothing(
    api: Api, behind: Api, proxy: Proxy, project: Path, results: dict[str, str], tmp_path: Path
) -> None:
    """Each request that the proxy makes extends the one before, in the API of the server behind."""
    with scripted(scenario(), tmp_path / "model", proxy.behind) as model:
        outcome = play(proxy.server(api, behind), project, tmp_path)
        outcome.check(results)
        # Emacs has the whole of the last reply before its record is written.
        assert until(lambda: len(model.asked()) >= TURNS), len(model.asked())
    answers = [(line["status"], line["error"]) for line in model.asked()]
    assert answers == [(200, None)] * TURNS
    assert {line["path"] for line in model.asked()} == {PATHS[behind]}
    passed_on = [line["body"] for line in model.asked()]
    check_prefixes(passed_on, [turn["rewritten"] for turn in outcome.exchange.begun])


def test_sixty_turns_with_aimock_lose_nothing(
    api: Api, project: Path, results: dict[str, str], tmp_path: Path
) -> None:
    with aimock([fixture(step) for step in played()], tmp_path / "aimock") as server:
        outcome = play(Server(server.url, api), project, tmp_path)
        journal = server.journal()
    outcome.check(results)
    assert [entry["response"]["status"] for entry in journal] == [200] * TURNS
