"""Writes the manual's chapter of Emacs's options: `python -m tests.docs.options_page`.

It is made of the forms `defcustom` of `elisp/`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import groupby
from typing import Any

from tests.docs.pages import ROOT
from tests.docs.texinfo import FOLDER, code, escape

PAGE = FOLDER / "options.texi"
SCRIPT = ROOT / "tests" / "emacs" / "document-options.el"
LONGEST_DEFAULT = 120
"""The characters of a default above which only the number of its elements is shown."""
QUOTED = re.compile(r"`([^`'\s]+)'")
NODE = re.compile(r"Info node `\(efrit\) ([^']+)'")
INTRODUCTION = """\
@c Written by `python -m tests.docs.options_page`; changes are lost.
@node Options
@chapter Options
@cindex options

@kbd{M-x customize-group RET efrit RET} shows them all, and
@kbd{M-x customize-group RET efrit-faces RET} the looks. A session takes its options when it
begins (@pxref{Options of a Session}).
"""


def page() -> str:
    """Return the whole chapter."""
    sections = groupby(options(), lambda option: str(option["section"]))
    return "\n".join([INTRODUCTION, *(part(title, list(found)) for title, found in sections)])


def options() -> list[dict[str, Any]]:
    """Return the options in the order of the files."""
    command = [os.environ.get("EMACS", "emacs"), "-Q", "--batch", "-l", str(SCRIPT)]
    found: list[dict[str, Any]] = json.loads(subprocess.check_output(command))
    return found


def part(title: str, found: list[dict[str, Any]]) -> str:
    """Return the section about some options."""
    node = f"Options for {title[0].lower()}{title[1:]}"
    heading = f"@node {node}\n@section {title}\n"
    return "\n".join([heading, *map(definition, found)])


def definition(option: dict[str, Any]) -> str:
    """Return the definition of one option."""
    linked = NODE.sub(r"@ref{\1}", escape(option["documentation"]))
    meaning = QUOTED.sub(r"@code{\1}", linked)
    return f"@defopt {option['name']}\n{meaning}\n\n{default_of(option)}\n@end defopt\n"


def default_of(option: dict[str, Any]) -> str:
    """Return a sentence with the default of an option."""
    if len(option["default"]) > LONGEST_DEFAULT and option["length"]:
        return f"The default is a list of {option['length']}; @kbd{{C-h v}} shows it."
    return f"The default is {code(' '.join(option['default'].split()))}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
