"""Wheel and package as people install them, each in a new home, to the end of the demo."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.emacs.batch import ROOT
from tests.emacs.over_ssh import script
from tests.packaging.emacs import lisp, run
from tests.servers.processes import environment_of

pytestmark = pytest.mark.soak(alone=True)

DRIVER = str(ROOT / "tests" / "packaging" / "installed.el")
INIT = (
    '(load (expand-file-name "efrit-autoloads" (car (process-lines "efrit-budget" "elisp-path"))))'
)
"""The line for an init file in README.md."""
NOT_BUILT = (".git", ".venv", ".*_cache", "*.egg-info", "__pycache__", "build", "dist", "tests")
"""What of a checkout has no part in the packages."""
EMACSEN = ("", "emacs30")
"""The Emacs of the machine, and the script that gives a newer one."""


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs that build and install packages."""
    return environment_of("packaging") / "bin"


@pytest.fixture(scope="session")
def built(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source that it was built from.

    They are built from a copy, since tests that run at once would build in one place.
    """
    folder, checkout = (
        tmp_path_factory.mktemp("built"),
        tmp_path_factory.mktemp("copy") / "checkout",
    )
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*NOT_BUILT))
    made = subprocess.run(
        [programs / "python", "-m", "build", "--outdir", folder, checkout],
        env=os.environ | settings_of_pip(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    """The wheel."""
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package for Emacs."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run([sys.executable, ROOT / ".ci" / "lisp.py", "package", folder], check=True)
    (found,) = folder.glob("*.tar")
    return found


def settings_of_pip() -> dict[str, str]:
    """Return the variable that has pip keep the person's own settings in another home."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    files = [home / ".config" / "pip" / "pip.conf", home / ".pip" / "pip.conf"]
    found = next((file for file in files if file.is_file()), None)
    return {"PIP_CONFIG_FILE": str(found)} if found else {}


class Person:
    """Somebody with a new home, an Emacs, and few programs beyond the system's."""

    def __init__(self, home: Path, emacs: str, programs: Sequence[Path] = ()) -> None:
        self.home = home
        self._emacs = script(emacs) if emacs else ""
        bin_folder = home / "programs"
        bin_folder.mkdir(parents=True)
        for program in programs:
            (bin_folder / program.name).symlink_to(program)
        # The folder where uv and pipx put programs is on PATH for who follows their advice.
        own = [str(home / ".local" / "bin"), str(bin_folder)]
        path = os.pathsep.join([*own, os.environ["PATH"]])
        self.variables = {
            "PATH": path,
            "EFRIT_BUDGET_HOME": str(home / "efrit"),
            **settings_of_pip(),
        }

    def shell(self, *command: str | Path) -> str:
        """Run a command, which has to succeed, and return what it prints."""
        environment = os.environ | {"HOME": str(self.home), **self.variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def emacs(self, *arguments: str) -> str:
        """Run Emacs, which has to succeed, and return what it prints."""
        done = run(self.home, *arguments, emacs=self._emacs or None, variables=self.variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def use(self, *loading: str) -> None:
        """Have the doctor find nothing wrong, and play the demo."""
        report = self.emacs(*loading, "-l", DRIVER, "-f", "installed-doctor")
        assert report.startswith("Everything is in order: M-x efrit-do.")
        assert "There it is, as it was." in self.emacs(
            *loading, "-l", DRIVER, "-f", "installed-demo"
        )


def test_wheel_and_source_are_as_the_index_wants_them(programs: Path, built: Path) -> None:
    files = list(built.iterdir())
    assert len(files) == 2
    subprocess.run([programs / "twine", "check", "--strict", *files], check=True)


def test_the_wheel_has_the_manual(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {"efrit_budget/elisp/efrit.info", "efrit_budget/elisp/dir"} <= {*archive.namelist()}


@pytest.mark.parametrize("emacs", EMACSEN)
def test_a_wheel_in_a_clean_virtualenv_is_sidecar_and_emacs_package(
    emacs: str, tmp_path: Path, wheel: Path
) -> None:
    """The virtual environment is on no PATH: Emacs finds the program beside the Lisp files."""
    person, place = Person(tmp_path / "home", emacs), tmp_path / "environment"
    person.shell(sys.executable, "-m", "venv", place)
    person.shell(place / "bin" / "python", "-m", "pip", "install", "-q", wheel)
    folder = person.shell(place / "bin" / "efrit-budget", "elisp-path")
    assert Path(folder).is_relative_to(place)
    assert "efrit-budget" in person.shell(place / "bin" / "efrit-budget", "completion", "bash")
    person.use(lisp("load", f"{folder}/efrit-autoloads"))


@pytest.mark.parametrize(
    ("program", "words"), [("uv", ("tool", "install")), ("pipx", ("install",))]
)
def test_one_line_is_enough_after_an_installation_by(
    program: str, words: tuple[str, ...], tmp_path: Path, programs: Path, wheel: Path
) -> None:
    person = Person(tmp_path / "home", "", [programs / program])
    person.shell(program, *words, wheel)
    person.use(INIT)


@pytest.mark.parametrize(("emacs", "way"), [("", "venv"), ("", "pipx"), ("emacs30", "uv")])
def test_a_package_in_a_fresh_emacs_gets_its_sidecar_from_the_doctor(
    emacs: str, way: str, tmp_path: Path, programs: Path, wheel: Path, package: Path
) -> None:
    tools = [] if way == "venv" else [programs / way]
    person, loading = Person(tmp_path / "home", emacs, tools), ("-f", "package-initialize")
    person.emacs(lisp("package-install-file", str(package)))
    asked = person.emacs(*loading, "-l", DRIVER, lisp("installed-install", way, str(wheel)))
    assert asked.startswith("Install the sidecar: run ")
    assert str(wheel) in asked.partition("? ")[0]
    person.use(*loading)
    shutil.rmtree(person.home)
