"""The file by which this program is installed on another machine."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from efrit_budget import __version__
from efrit_budget.installer import bundle, distributions, unpack
from efrit_budget.installer.machine import Machine

FEW = ("efrit-budget", "platformdirs")
WHEEL = {
    "made/__init__.py": b"",
    "made-1.data/scripts/made": b"a program",
    "made-1.data/platlib/made/more.py": b"",
    "made-1.data/headers/made.h": b"",
    "../made": b"",
    "made/": b"",
}


@dataclass
class Made:
    """A distribution that is not the same on each machine."""

    name: str = "made"
    version: str = "1"
    is_pure: bool = False


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The distributions to install: few, so that it is quick."""
    found: list[Any] = [one for one in distributions.needed() if one.name in FEW]
    assert len(found) == len(FEW)
    monkeypatch.setattr(bundle, "needed", lambda: found)
    return found


def install(file: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run an installer with this Python, for a person with this home."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True, check=False
    )


def test_what_is_installed_here_is_installed_there(tmp_path: Path) -> None:
    """In place of what was there; a folder where it is started has no part in it."""
    data, hostile = tmp_path / ".local/share/efrit-budget", tmp_path / "project"
    for file in (data / "venv" / "old", data / "mine", hostile / "efrit_budget.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("print('hostile')")
    installer = tmp_path / "install.pyz"
    assert bundle.write_installer(installer, Machine.here()) == []
    done = install(installer, tmp_path)
    assert f"Installing efrit-budget {__version__} in {data / 'venv'}" in done.stdout, done.stderr
    assert "package platformdirs" in done.stdout
    assert not (data / "venv" / "old").exists()
    assert (data / "mine").exists()
    command = [str(data / "venv/bin/efrit-budget"), "--version"]
    shown = subprocess.run(command, cwd=hostile, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith(f"efrit-budget {__version__}")


def test_programs_are_installed_too() -> None:
    files = [file for one in distributions.needed() for file in one.files()]
    assert [file.path for file in files if file.is_program] == ["rg"]


def test_an_installer_for_another_python_says_so_and_installs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "install.pyz"
    bundle.write_installer(file, Machine("3.4", "linux-none", ""))
    done = install(file, tmp_path)
    assert done.returncode == 2
    assert "This installer is for Python 3.4, and this is Python" in done.stdout
    assert not (tmp_path / ".local").exists()


def test_what_cannot_be_had_is_named_with_what_to_do(
    tmp_path: Path,
    installed: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed.append(Made("no-such-package"))
    monkeypatch.setattr(bundle, "_download", lambda *_: None)
    missing = bundle.write_installer(tmp_path / "install.pyz", Machine("3.4", "linux-none", ""))
    assert missing == ["no-such-package==1"]
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    assert not unpack.add_missing(tmp_path, missing)
    said = capsys.readouterr().out
    assert "These could not be installed: no-such-package==1." in said
    assert "python3-venv" in said


def test_the_wheel_of_another_machine_is_taken_apart(
    tmp_path: Path, installed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "made-1-py3-none-other.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in WHEEL.items():
            archive.writestr(name, data)
    installed.append(Made())
    monkeypatch.setattr(bundle, "_download", lambda *_: wheel)
    file = tmp_path / "install.pyz"
    assert bundle.write_installer(file, Machine("3.99", "linux-other", "glibc-2.99")) == []
    with zipfile.ZipFile(file) as archive:
        names = {name for name in archive.namelist() if "made" in name.split("/")[1:]}
    assert names == {"packages/made/__init__.py", "packages/made/more.py", "programs/made"}


@pytest.mark.parametrize(
    ("machine", "first", "last"),
    [
        (
            Machine("3.11", "linux-x86_64", "glibc-2.36"),
            "manylinux_2_36_x86_64",
            "manylinux2014_x86_64",
        ),
        (
            Machine("3.12", "linux-aarch64", ""),
            "musllinux_1_1_aarch64",
            "musllinux_1_2_aarch64",
        ),
        (
            Machine("3.13", "macosx-14.0-arm64", ""),
            "macosx_14_0_arm64",
            "macosx_10_9_universal2",
        ),
    ],
)
def test_the_wheels_of_a_machine_are_named_as_pip_names_them(
    machine: Machine, first: str, last: str
) -> None:
    assert (machine.tags[0], machine.tags[-1]) == (first, last)
