"""The runner of the Lisp tests: the tests it selects, what they share, what none may leave."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.emacs.batch import ROOT

LEAVING = """
(ert-deftest leaves-a-buffer () (get-buffer-create "forgotten"))
(ert-deftest leaves-a-process () (start-process "sleeper" nil "sleep" "60"))
(ert-deftest leaves-a-timer () (run-at-time 3600 nil #'ignore "later"))
(ert-deftest leaves-a-file () (make-temp-file "forgotten-"))
(ert-deftest leaves-nothing () (with-temp-buffer (should t)))
"""
TAGGED = """
(ert-deftest usual () t)
(ert-deftest takes-long () :tags '(:long) t)
(ert-deftest takes-hours () :tags '(:soak) t)
"""


def evaluate(folder: Path, tests: str, form: str, **environment: str) -> str:
    """Return the output of an Emacs that has tests, loads the runner and evaluates a form."""
    file = folder / "tests.el"
    file.write_text(f"(require 'ert)\n{tests}", encoding="utf-8")
    runner = ROOT / "tests" / "elisp" / "run.el"
    loads = f'(let ((noninteractive nil)) (load "{runner}" nil t) (setq left-patience 0))'
    own = "(efrit-run--make-folder)"
    done = subprocess.run(
        [
            *(os.environ.get("EMACS", "emacs"), "-Q", "--batch"),
            *("-l", str(file), "--eval", loads, "--eval", own, "--eval", form),
        ],
        env={**os.environ, "TMPDIR": str(folder), **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("test", "left"),
    [
        ("leaves-a-buffer", "it left behind: buffer forgotten"),
        ("leaves-a-process", "it left behind: process sleeper"),
        ("leaves-a-timer", "it left behind: timer (ignore later)"),
        ("leaves-a-file", "it left behind: file "),
    ],
)
def test_what_a_test_leaves_fails_it_and_is_named_and_removed(
    tmp_path: Path, test: str, left: str
) -> None:
    run = f'(efrit-run--report (efrit-run--all (ert-select-tests "{test}\\\\|nothing" t)))'
    printed = evaluate(tmp_path, LEAVING, run)
    assert left in printed
    assert f"     LEFT  {test}" in printed
    assert "   passed  leaves-nothing" in printed
    assert "Ran 2 tests, 1 results as expected, 1 unexpected" in printed
    assert not list(tmp_path.rglob("forgotten-*"))


def test_what_others_put_beside_the_temporary_files_is_left_alone(tmp_path: Path) -> None:
    meets = """(ert-deftest meets-others ()
      (write-region "" nil (expand-file-name "../of-others" temporary-file-directory)))"""
    printed = evaluate(tmp_path, meets, "(efrit-run--all (ert-select-tests t t))")
    assert "   passed  meets-others" in printed
    assert (tmp_path / "of-others").exists()


def test_each_test_is_run_by_one_of_the_emacsen_that_share_them(tmp_path: Path) -> None:
    (tmp_path / "queue" / "usual").mkdir(parents=True)
    run = "(efrit-run--all (ert-select-tests t t))"
    queue = str(tmp_path / "queue")
    printed = [evaluate(tmp_path, TAGGED, run, EFRIT_QUEUE=queue) for _ in range(2)]
    assert [part.count("passed") for part in printed] == [2, 0]
    assert "passed  usual" not in printed[0]


@pytest.mark.parametrize(("soak", "chosen"), [("0", "(takes-long usual)"), ("1", "(takes-hours)")])
def test_the_long_come_first_and_the_soak_alone(tmp_path: Path, soak: str, chosen: str) -> None:
    choose = '(princ (mapcar #\'ert-test-name (efrit-run--choose "")))'
    assert chosen in evaluate(tmp_path, TAGGED, choose, EFRIT_SOAK=soak)
