"""`efrit-budget elisp-path`: the folder of the Emacs package."""

from __future__ import annotations

from pathlib import Path

import pytest

from efrit_budget.cli import elisp_path
from tests.cli.command import efrit

ROOT = Path(__file__).resolve().parents[2]


def test_in_a_checkout_it_is_that_of_the_checkout() -> None:
    assert efrit("elisp-path").out == f"{ROOT / 'elisp'}\n"


def test_of_an_installed_package_it_is_in_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "efrit_budget" / "elisp"
    folder.mkdir(parents=True)
    (folder / "efrit.el").touch()
    monkeypatch.setattr(elisp_path, "PACKAGE", folder.parent)
    assert efrit("elisp-path").out == f"{folder}\n"


def test_without_the_emacs_package_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elisp_path, "PACKAGE", tmp_path / "efrit_budget")
    ended = efrit("elisp-path")
    assert (ended.code, ended.out) == (1, "")
    assert "install the wheel of efrit-budget" in ended.complaint
