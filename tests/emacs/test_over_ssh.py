"""Over a real ssh, with the TRAMP of this Emacs, nothing hangs and every file is right."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.demo.running import endpoint
from tests.emacs.over_ssh import HOST, OTHER_HOST, Driver, Machine, driver, machine, script
from tests.emacs.ssh_steps import Session, Tree, Use, session
from tests.soak import LENGTH

SESSIONS = max(1, round(4 * LENGTH))
STEPS = 12
SECONDS = 120
"""The seconds without output after which Emacs counts as hanging."""
MOST_BREAKS = 4
"""The broken connections of a session; after more in a minute Emacs gives up."""


def digests(tree: Tree) -> dict[str, str]:
    """Return a digest of each file of a project."""
    return {name: hashlib.md5(text.encode()).hexdigest() for name, text in tree.items()}


@contextmanager
def project(there: Machine, asked: Session, name: str) -> Iterator[tuple[Path, str]]:
    """Yield a new project on the other machine, and the URL of a model that works as asked."""
    folder = there.folder / name
    root = folder / "project"
    root.mkdir(parents=True)
    with endpoint(asked.scenario(), folder) as model:
        yield root, model.server.url


def follow(emacs: Driver, uses: Sequence[Use], between: Callable[[int], object] = id) -> None:
    """Check that each step of a session ends and leaves the files as expected.

    After each step but the last, `between` is called with the number of the next one.
    """
    for number in range(1, len(uses) + 1):
        check(emacs.next("USE", SECONDS), uses[:number])
        if number < len(uses):
            between(number)
    ended = emacs.next("END", SECONDS)
    assert (ended["problem"], ended["buffers"]) == (None, [])


def check(given: dict[str, Any], uses: Sequence[Use]) -> None:
    """Check what Emacs gives of the last of these uses."""
    assert given["name"] == uses[-1].tool, given
    assert (given["status"] == "success") is uses[-1].success, (given, uses)
    assert given["tree"] == digests(uses[-1].tree), (given, uses)


def emacsen() -> list[str]:
    """Return the Emacs of the tests, and an Emacs 30 if the former is older."""
    own = os.environ.get("EMACS", "emacs")
    return [own, *filter(None, [script("emacs30")])]


@pytest.mark.soak(alone=True)
@pytest.mark.parametrize("shared", [False, True], ids=["tramp", "own-settings"])
def test_nothing_hangs_and_every_file_is_right_over_ssh(shared: bool) -> None:
    """Edits, commands and undos come in any order, with and without shared connections."""
    for emacs in emacsen():
        chance = random.Random(7)
        with machine(shared) as there, driver(there, emacs) as running:
            for number in range(SESSIONS):
                asked = session(chance, STEPS)
                with project(there, asked, f"session{number}") as here:
                    running.begin({HOST: here})
                    follow(running, asked.uses)


@pytest.mark.soak(alone=True)
def test_a_broken_connection_is_taken_up_again_and_no_change_is_lost_or_made_twice() -> None:
    """Each step goes on after the ssh of the sidecar, or each ssh, was killed at some moment."""
    for emacs in emacsen():
        for number in range(SESSIONS):
            chance = random.Random(number)
            asked = session(chance, STEPS, commands=False)
            broken = chance.sample(range(1, len(asked.uses)), MOST_BREAKS)
            with (
                machine() as there,
                driver(there, emacs) as running,
                project(there, asked, "session") as here,
            ):
                running.begin({HOST: here})
                breaking = partial(break_off, running, chance, broken)
                follow(running, asked.uses, breaking)


def break_off(emacs: Driver, chance: random.Random, broken: Sequence[int], number: int) -> None:
    """Kill the ssh of the sidecar, or each ssh, a moment after a step, if it is one of `broken`."""
    if number in broken:
        time.sleep(chance.uniform(0.0, 0.2))
        found = emacs.connections()
        for pid in found[-1:] if chance.random() < 0.5 else found:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.soak(alone=True)
def test_sessions_on_two_machines_work_at_once() -> None:
    """Each goes its way, whatever the other waits for."""
    chance = random.Random(13)
    with machine() as there, driver(there, emacsen()[0]) as running:
        sessions = {host: session(chance, STEPS) for host in (HOST, OTHER_HOST)}
        with ExitStack() as stack:
            running.begin(
                {
                    host: stack.enter_context(project(there, asked, host.strip("/:")))
                    for host, asked in sessions.items()
                }
            )
            done: dict[str, int] = dict.fromkeys(sessions, 0)
            for _ in range(sum(len(asked.uses) for asked in sessions.values())):
                given = running.next("USE", SECONDS)
                host = next(name for name in sessions if given["root"].startswith(name))
                done[host] += 1
                check(given, sessions[host].uses[: done[host]])
            for _ in sessions:
                ended = running.next("END", SECONDS)
                assert (ended["problem"], ended["buffers"]) == (None, [])


@pytest.mark.soak(alone=True)
def test_the_sidecar_is_installed_on_a_machine_without_it_and_works_there() -> None:
    """A session finds the program where the command put it, without any setting."""
    for emacs in emacsen():
        asked = session(random.Random(17), STEPS)
        with (
            machine(bare=True) as there,
            driver(there, emacs) as running,
            project(there, asked, "session") as here,
        ):
            said = running.install(HOST)
            assert f"Installed on {HOST}" in said, said
            assert str(there.folder / "home/.local/share/efrit-budget/venv/bin") in said
            running.begin({HOST: here})
            follow(running, asked.uses)


@pytest.mark.soak(alone=True)
@pytest.mark.skipif(os.getuid() != 0, reason="su would ask for a password")
def test_another_user_of_this_machine_is_a_machine_as_well() -> None:
    """TRAMP's other methods lead to a sidecar as ssh does."""
    for emacs in emacsen():
        asked = session(random.Random(19), STEPS)
        with (
            machine() as there,
            driver(there, emacs) as running,
            project(there, asked, "session") as here,
        ):
            running.begin({"/su::": here})
            follow(running, asked.uses)
