"""The manual in `docs/manual/`: makeinfo takes it, and it has every option, setting and command."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from efrit_budget.settings.model import known_settings
from tests.docs.pages import ROOT
from tests.docs.texinfo import MAIN, as_markdown, sources

TEXTS = {file.name: file.read_text(encoding="utf-8") for file in sources()}
ALL = "".join(TEXTS.values())
LISP = "".join(
    file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "elisp").glob("*.el"))
    if file.name != "efrit-autoloads.el"
)


def marked(pattern: str, text: str = ALL) -> set[str]:
    """Return what the group of a pattern matches at the beginnings of lines."""
    return set(re.findall(rf"(?s:^{pattern})", text, re.MULTILINE))


OPTIONS = marked(r"\(defcustom (\S+)", LISP)
COMMANDS = marked(
    r";;;###autoload\n\(defun (efrit\S*) (?:(?!\n\n).)*?\n  \(interactive\b", LISP
) | {"efrit"}


def test_makeinfo_takes_it_without_a_warning(tmp_path: Path) -> None:
    command = ["makeinfo", "--no-split", f"--output={tmp_path / 'efrit.info'}", str(MAIN)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_includes_each_of_its_files() -> None:
    assert marked(r"@include (\S+)", TEXTS[MAIN.name]) == set(TEXTS) - {MAIN.name}


def test_every_option_of_emacs_is_defined_in_it() -> None:
    assert len(OPTIONS) > 100
    assert marked(r"@defopt (\S+)") == OPTIONS


def test_every_setting_of_the_sidecar_is_defined_in_it() -> None:
    assert marked(r"@defvr Setting (\S+)") == set(known_settings())


def test_every_command_is_in_its_chapter_of_commands() -> None:
    assert len(COMMANDS) > 40
    assert not COMMANDS - marked(r"@findex (\S+)", TEXTS["commands.texi"])


def test_the_indexes_name_what_there_is() -> None:
    defined = marked(r"\((?:defun|transient-define-prefix) (\S+)", LISP)
    assert not marked(r"@findex (\S+)") - defined
    assert not marked(r"@vindex (\S+)") - OPTIONS - set(known_settings())


@pytest.mark.parametrize("name", TEXTS)
def test_every_page_that_it_refers_to_exists(name: str) -> None:
    named = re.findall(r"@file\{(docs/[^}]+)\}", TEXTS[name])
    assert not [page for page in named if not (ROOT / page).exists()]


def test_it_is_read_as_the_pages_in_markdown_are() -> None:
    source = "Type @kbd{C-c ?} or @code{a@@b@{@}}.\n\n@example json\n@{@}\n@end example\n"
    assert as_markdown(source) == "Type `C-c ?` or `a@b{}`.\n\n```json\n{}\n```\n"
