"""`.ci/setup` on machines where programs are missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from efrit_budget.cli.checks.check import LIST, listed_programs

ROOT = Path(__file__).resolve().parent.parent
ITS_OWN = (
    *("bash", "cat", "cksum", "cut", "dirname", "env", "grep", "head", "mktemp", "paste", "pwd"),
    *("readlink", "rm", "sed", "sort", "touch"),
)
"""The programs that the script itself runs."""
PYTHON = """case $1 in
--version) echo "Python 3.12.1" ;;
-c) case $2 in *venv* | *ensurepip*) [ -e "$MODULES" ] ;; esac ;;
-m) case $2 in venv) mkdir -p .venv/bin && cp "$0" .venv/bin/python && : >.venv/bin/pip &&
  chmod +x .venv/bin/pip ;; esac ;;
esac"""
PRINTS = {
    "git": "git version 2.39.5",
    "emacs": "GNU Emacs 30.1",
    "curl": "curl 8.5.0",
    "node": "v20.19.2",
    "ctags": "Universal Ctags 6.1.0, +json",
}

BY_HAND = "install --no-install-recommends emacs-gtk curl ca-certificates"
ELSEWHERE = "Install it with your system's package manager; Debian's packages are:"


@dataclass(frozen=True)
class Machine:
    """A checkout, and a folder with all programs of the machine."""

    folder: Path

    @property
    def programs(self) -> Path:
        """The only folder on PATH."""
        return self.folder / "programs"

    @property
    def installed(self) -> list[str]:
        """The packages that apt-get was asked to install."""
        log = self.folder / "installed"
        return log.read_text(encoding="utf-8").split() if log.exists() else []

    def add(self, name: str, script: str) -> None:
        """Add a program."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def add_printing(self, *names: str) -> None:
        """Add programs that tell their version."""
        for name in names:
            self.add(name, f'echo "{PRINTS.get(name, name)}"')

    def add_apt_get(self) -> None:
        """Add an apt-get that notes what it is to install, and installs an Emacs and a curl."""
        self.add(
            "apt-get",
            f"""case " $* " in *" install "*)
  for word; do case $word in -* | install | DPkg*) ;; *) echo "$word" ;; esac; done \\
    >>{self.folder}/installed
  for name in emacs curl; do
    printf '#!/bin/sh\\necho 99.9\\n' >{self.programs}/$name; chmod +x {self.programs}/$name
  done ;;
esac""",
        )

    def set_up(self, purpose: str = "demo") -> subprocess.CompletedProcess[str]:
        """Run the script to its end."""
        return subprocess.run(
            [self.folder / "checkout" / ".ci" / "setup", purpose],
            env={"PATH": str(self.programs), "MODULES": str(self.folder / "modules")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine of an ordinary user with everything needed to use the program."""
    made = Machine(tmp_path)
    checkout = tmp_path / "checkout"
    for file in (ROOT / ".ci" / "setup", LIST, ROOT / "pyproject.toml", ROOT / "constraints.txt"):
        copy = checkout / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    made.programs.mkdir()
    for name in (*ITS_OWN, "sh", "cp", "mkdir", "chmod"):
        found = shutil.which(name)
        assert found is not None
        (made.programs / name).symlink_to(found)
    made.add_printing("git", "emacs", "curl", "diff", "make")
    made.add("python3", PYTHON)
    made.add("id", "echo 1000")
    (tmp_path / "modules").touch()
    return made


def without(machine: Machine, *names: str) -> Machine:
    """Remove programs from the machine and return it."""
    for name in names:
        (machine.programs / name).unlink()
    return machine


def test_with_all_that_is_needed_it_makes_the_environment_and_says_so(machine: Machine) -> None:
    done = machine.set_up()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "setup: making .venv with Python 3.12.1 (python3)",
        "setup: pip install -e .[dev]",
    ]
    again = machine.set_up()
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def with_sudo(machine: Machine) -> None:
    """Add apt-get, and a sudo that asks for a password."""
    machine.add_apt_get()
    machine.add(
        "sudo", 'case $1 in -n) echo "sudo: a password is required" >&2; exit 1 ;; esac; cat'
    )


def without_sudo(machine: Machine) -> None:
    """Add apt-get, but no sudo."""
    machine.add_apt_get()


def without_apt_get(machine: Machine) -> None:
    """Leave the machine without sudo and apt-get."""


@pytest.mark.parametrize(
    ("have", "advice"),
    [
        (with_sudo, f"Run: sudo apt-get update && sudo apt-get {BY_HAND}"),
        (without_sudo, f"Run as root: apt-get update && apt-get {BY_HAND}"),
        (without_apt_get, f"{ELSEWHERE} emacs-gtk curl ca-certificates"),
    ],
)
def test_who_may_not_install_gets_one_message_that_says_what_and_how(
    machine: Machine, have: Callable[[Machine], None], advice: str
) -> None:
    machine.add_printing("ctags")
    have(without(machine, "emacs", "curl"))
    done = machine.set_up()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "setup: this is missing, and has to be installed by hand:",
        "  - Emacs 28.1 or newer, for the Emacs client",
        "  - curl 7.54 or newer, for requests to the model",
        advice,
        "EMACS=... names another Emacs than 'emacs'.",
    ]
    assert machine.installed == []


def test_the_superuser_has_everything_installed_that_is_missing(machine: Machine) -> None:
    without(machine, "emacs", "curl").add("id", "echo 0")
    machine.add_apt_get()
    done = machine.set_up()
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.installed == ["universal-ctags", "emacs-gtk", "curl", "ca-certificates"]


def test_what_is_optional_is_not_asked_for_alone(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add_apt_get()
    assert machine.set_up().returncode == 0
    assert machine.installed == []


def test_a_python_without_the_venv_module_is_told_apart(machine: Machine) -> None:
    (machine.folder / "modules").unlink()
    done = machine.set_up()
    assert done.returncode == 1
    assert "  - Python's venv, for the checkout's .venv" in done.stderr
    assert "  - Python 3.11" not in done.stderr


@pytest.mark.parametrize(
    ("name", "prints", "missing"),
    [
        ("emacs", "GNU Emacs 27.2", "Emacs 28.1 or newer"),
        ("git", "git version 2.9.1", "git 2.31 or newer"),
        ("curl", "", "curl 7.54 or newer"),
        ("python3", "Python 3.9.18", "Python 3.11 or newer"),
    ],
)
def test_what_is_too_old_or_does_not_run_is_missing(
    machine: Machine, name: str, prints: str, missing: str
) -> None:
    machine.add(name, f'echo "{prints}"')
    done = machine.set_up()
    assert done.returncode == 1
    assert f"  - {missing}" in done.stderr


@pytest.mark.parametrize("purpose", ["test", "model", "picture"])
def test_the_other_commands_need_more(machine: Machine, purpose: str) -> None:
    asked = [line.split(",")[0] for line in machine.set_up(purpose).stderr.splitlines()]
    tests = {"test", "test?"} if purpose != "model" else set()
    users = {"sidecar", "client", "checkout", purpose} | tests
    for program in listed_programs().values():
        present = any((machine.programs / name).exists() for name in program.names)
        if users & set(program.needed_by) and program.names != ("rg",) and not present:
            needed = f"  - {program.name}{f' {program.oldest} or newer' if program.oldest else ''}"
            assert (needed in asked) == bool(program.names), program
