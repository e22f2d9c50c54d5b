"""The Emacs package: the files in it, and what an Emacs has that installed it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.emacs.batch import ROOT
from tests.packaging.emacs import lisp, run

MANUAL = ("efrit.info", "dir")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout's Lisp files, with what makes a package of them."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "elisp", copy / "elisp", ignore=shutil.ignore_patterns(*MANUAL))
    shutil.copytree(ROOT / "docs" / "manual", copy / "docs" / "manual")
    for name in (".ci/lisp.py", "LICENSE"):
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return copy


def make(checkout: Path, what: str, folder: Path) -> None:
    """Make something of the Lisp files of a checkout, into a folder."""
    subprocess.run([sys.executable, ".ci/lisp.py", what, str(folder)], cwd=checkout, check=True)


def members(package: Path) -> set[str]:
    """Return the names of the files in a package, without its folder."""
    with tarfile.open(package) as archive:
        return {name.removeprefix("efrit-0.1.0/") for name in archive.getnames()}


def test_the_package_has_the_lisp_files_and_the_manual_where_it_was_made(
    checkout: Path, tmp_path: Path
) -> None:
    written = {file.name for file in (ROOT / "elisp").glob("*.el")} - {"efrit-autoloads.el"}
    package = tmp_path / "efrit-0.1.0.tar"
    make(checkout, "package", tmp_path)
    assert members(package) == {*written, "efrit-pkg.el", "LICENSE"}
    before = package.read_bytes()
    make(checkout, "package", tmp_path)
    assert package.read_bytes() == before
    for name in MANUAL:
        (checkout / "elisp" / name).write_text("", encoding="utf-8")
    make(checkout, "package", tmp_path)
    assert members(package) == {*written, *MANUAL, "efrit-pkg.el", "LICENSE"}


def test_without_makeinfo_the_manual_is_not_made_and_what_is_missing_is_named(
    checkout: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, ".ci/lisp.py", "manual", str(tmp_path)],
        cwd=checkout,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "makeinfo is missing, without which there is no manual: install texinfo\n"
    )


def test_the_copy_for_the_wheel_has_the_autoloads_and_the_manual_too(
    checkout: Path, tmp_path: Path
) -> None:
    for name in (*MANUAL, "efrit.elc"):
        (checkout / "elisp" / name).write_text("", encoding="utf-8")
    copied = tmp_path / "copied"
    copied.mkdir()
    (copied / "efrit-gone.el").touch()
    make(checkout, "copy", copied)
    written = {file.name for file in (ROOT / "elisp").glob("*.el")} | {"efrit-autoloads.el"}
    assert {file.name for file in copied.iterdir()} == {*written, *MANUAL}


def test_the_recipe_names_the_files_of_the_package(checkout: Path, tmp_path: Path) -> None:
    recipe = (ROOT / "recipes" / "efrit").read_text(encoding="utf-8")
    (checkout / "elisp" / "efrit-autoloads.el").unlink(missing_ok=True)
    patterns = [word.strip('()"') for word in recipe.partition(":files")[2].split()]
    named = {file.name for pattern in patterns for file in checkout.glob(pattern)}
    assert "efrit.texi" in named
    make(checkout, "manual", checkout / "elisp")
    make(checkout, "package", tmp_path)
    # package-build makes these of the source.
    made = {"efrit-pkg.el", "LICENSE", *MANUAL}
    assert named - {"efrit.texi"} | made == members(tmp_path / "efrit-0.1.0.tar")


@pytest.mark.parametrize("installed", [True, False], ids=["package", "checkout"])
def test_the_manual_opens_and_is_in_the_menu_of_info(
    checkout: Path, tmp_path: Path, *, installed: bool
) -> None:
    make(checkout, "manual", checkout / "elisp")
    home = tmp_path / "home"
    if installed:
        make(checkout, "package", tmp_path)
        assert run(home, lisp("package-install-file", str(tmp_path / "efrit-0.1.0.tar")))
        loading = ("-f", "package-initialize")
    else:
        make(checkout, "autoloads", checkout / "elisp")
        loading = ("-l", str(checkout / "elisp" / "efrit-autoloads.el"))
    opened = run(home, *loading, "-f", "efrit-manual", "(princ (list mode-name Info-current-node))")
    assert opened.stdout == "(Info Top)", opened.stderr
    listed = run(home, *loading, '(info "dir")', "(princ (buffer-string))")
    assert "* Efrit: (efrit)." in listed.stdout, listed.stderr


def test_an_emacs_that_installed_the_package_has_the_commands_and_says_what_is_missing(
    checkout: Path, tmp_path: Path
) -> None:
    """It compiles without a warning, and nobody is told to install from a checkout."""
    make(checkout, "package", tmp_path)
    home = tmp_path / "home"
    done = run(home, lisp("package-install-file", str(tmp_path / "efrit-0.1.0.tar")))
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    names = "(princ (list (commandp 'efrit) (featurep 'efrit) (locate-library \"demo\")))"
    found = run(home, "-f", "package-initialize", names)
    assert found.stdout == "(t nil nil)", found.stderr
    doctor = run(home, "-f", "package-initialize", "-f", "efrit-doctor")
    assert doctor.returncode == 1
    advice = (
        "M-x efrit-doctor offers to install it; or run in a shell: uv tool install efrit-budget"
    )
    assert advice in doctor.stdout
    assert "checkout" not in doctor.stdout
