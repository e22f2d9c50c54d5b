"""Corpus texts that lie on the machine as files: sources, documents, data, translations."""

from __future__ import annotations

import gettext
import html
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from pathlib import Path

from tests.benchmarks.corpora_texts import (
    CODE,
    DATA,
    ENGLISH,
    LONGEST_TEXT,
    SCRIPTS,
    Root,
    Text,
    first_word,
    read,
    stable,
    walk,
)

ORIGINS_PER_KIND = 120
FILES_PER_ORIGIN = 8
SHARE, INCLUDE, LIB = Path("/usr/share"), Path("/usr/include"), Path("/usr/lib")

KINDS: dict[str, tuple[str, str]] = {
    ".py": ("python", CODE),
    ".el": ("elisp", CODE),
    ".c": ("c", CODE),
    ".h": ("c", CODE),
    ".hpp": ("c++", CODE),
    ".pm": ("perl", CODE),
    ".js": ("javascript", CODE),
    ".css": ("css", CODE),
    ".sh": ("shell", CODE),
    ".sql": ("sql", CODE),
    ".php": ("php", CODE),
    ".go": ("go", CODE),
    ".ts": ("typescript", CODE),
    ".rb": ("ruby", CODE),
    ".vim": ("vim script", CODE),
    ".cmake": ("cmake", CODE),
    ".patch": ("patches", CODE),
    ".rst": ("rst", ENGLISH),
    ".md": ("markdown", ENGLISH),
    ".txt": ("plain english", ENGLISH),
    ".html": ("html", DATA),
    ".json": ("json", DATA),
    ".yaml": ("yaml", DATA),
    ".toml": ("configuration", DATA),
    ".cfg": ("configuration", DATA),
    ".conf": ("configuration", DATA),
    ".desktop": ("configuration", DATA),
    ".ini": ("configuration", DATA),
    ".service": ("configuration", DATA),
    ".xml": ("xml", DATA),
    ".svg": ("svg", DATA),
    ".csv": ("csv", DATA),
    ".pem": ("pem", DATA),
    ".crt": ("pem", DATA),
    ".md5sums": ("checksums", DATA),
}

LANGUAGES = {
    "western european": "de fr es it pt pt_BR nl sv da nb ca gl",
    "eastern european": "cs pl ro sl sk hu hr lt lv et fi tr",
    "vietnamese": "vi",
    "cyrillic": "ru uk bg be sr",
    "greek": "el",
    "chinese": "cn zh zh_CN zh_TW zh_HK",
    "japanese": "ja",
    "korean": "ko",
    "hebrew": "he",
    "arabic": "ar fa",
    "thai": "th",
    "devanagari": "hi mr ne",
    "other scripts": "ka ta te bn gu pa km ml kn si hy am",
}
SCRIPT_OF = {code: name for name, codes in LANGUAGES.items() for code in codes.split()}


def output(*command: str) -> str:
    """Return the output of a program, or an empty text if it is not installed."""
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


@cache
def emacs_folder() -> Path:
    """Return the folder of Emacs's Lisp files and its `etc`."""
    found = output("emacs", "--batch", "--eval", "(princ data-directory)")
    return Path(found).parent if found else SHARE / "emacs"


@cache
def rust_folder() -> Path:
    """Return the folder of the Rust toolchain's documentation."""
    return Path(output("rustc", "--print", "sysroot") or "/nonexistent", "share/doc/rust/html")


def roots() -> list[Root]:
    """Return the folders that are searched for files by ending."""
    base = Path(sys.base_prefix, *Path(sysconfig.get_path("stdlib")).parts[-2:])
    return [
        Root(base / "site-packages"),
        Root(Path(sysconfig.get_path("purelib"))),
        Root(base, 2),
        Root(Path(output("npm", "root", "--global") or "/nonexistent", "npm/node_modules")),
        Root(emacs_folder() / "lisp", 9),
        Root(emacs_folder() / "etc/themes", 9),
        *[Root(path, 9) for path in INCLUDE.glob("c++/*")],
        *[Root(path, 9) for path in INCLUDE.glob("llvm*")],
        Root(INCLUDE),
        Root(SHARE / "perl", 2),
        Root(SHARE / "vim", 9),
        Root(SHARE / "doc"),
        Root(SHARE / "javascript"),
        Root(SHARE / "icons", 9),
        Root(SHARE / "xml", 2),
        Root(SHARE / "postgresql", 9),
        Root(LIB / "google-cloud-sdk/lib", 3),
        Root(LIB / "google-cloud-sdk/platform", 3),
        Root(Path(sys.base_prefix).parents[1] / "plugins/python-build/share/python-build", 2),
        Root(Path("/etc/ssl/certs"), 9),
        Root(Path("/var/lib/dpkg/info"), 9),
        Root(rust_folder(), 2),
        *[Root(path, 9) for path in SHARE.glob("cmake*")],
    ]


def kind_of(path: Path) -> tuple[str, str] | None:
    """Return a file's kind and group, or None if it is of no interest."""
    ending = path.suffix if path.suffix != ".gz" else path.with_suffix("").suffix
    if ending == ".h" and any(part in {"c++", "llvm-14", "llvm", "cccl"} for part in path.parts):
        ending = ".hpp"
    return KINDS.get(ending)


@cache
def files_by_kind() -> dict[tuple[str, str], dict[str, list[Path]]]:
    """Return every file of interest, by kind and origin."""
    found: dict[tuple[str, str], dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    seen: set[Path] = set()
    for root in roots():
        for path in walk(root.path):
            kind = kind_of(path)
            if kind and path not in seen:
                seen.add(path)
                found[kind][root.origin(path)].append(path)
    return found


def chosen(origins: dict[str, list[Path]]) -> Iterator[tuple[str, Path]]:
    """Yield a limited number of files, spread over the origins."""
    for origin in sorted(origins, key=stable)[:ORIGINS_PER_KIND]:
        for path in sorted(origins[origin], key=lambda path: stable(path.name))[:FILES_PER_ORIGIN]:
            yield origin, path


def is_minified(body: str) -> bool:
    """Return whether the lines of a script are far longer than a person writes them."""
    return len(body) > 200 * (body.count("\n") + 1)


def json_texts(origin: str, body: str) -> Iterator[Text]:
    """Yield a JSON file as it stands, if indented, and the same value written compactly."""
    try:
        value = json.loads(body)
    except ValueError:
        return
    yield Text("json indented", DATA, origin, json.dumps(value, indent=2, ensure_ascii=False))
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    yield Text("json compact", DATA, origin, compact)


def plain_files() -> Iterator[Text]:
    """Yield the files found by their ending."""
    for (kind, group), origins in files_by_kind().items():
        for origin, path in chosen(origins):
            body = read(path)
            if kind == "json":
                yield from json_texts(origin, body)
            elif kind == "javascript" and is_minified(body):
                yield Text("javascript minified", CODE, origin, body)
            else:
                yield Text(kind, group, origin, body)


def rust_texts() -> Iterator[Text]:
    """Yield Rust's library sources, unwrapped from the pages that show them."""
    root = Root(rust_folder() / "src", 2)
    pages = sorted(root.path.rglob("*.rs.html"), key=lambda path: stable(path.name))
    for page in pages[:300]:
        shown = re.search(r"<pre class=\"rust\"><code>(.*)</code></pre>", read(page), re.DOTALL)
        bare = re.sub(r"<a href=#\d+ id=\d+ data-nosnippet>\d+</a>", "", shown[1] if shown else "")
        yield Text("rust", CODE, root.origin(page), html.unescape(re.sub(r"<[^>]*>", "", bare)))


def java_texts() -> Iterator[Text]:
    """Yield the Java library's sources."""
    for packed in islice(sorted(LIB.glob("jvm/*/lib/src.zip")), 5):
        if not packed.exists():
            continue
        with zipfile.ZipFile(packed) as archive:
            names = sorted(
                filter(lambda name: name.endswith(".java"), archive.namelist()), key=stable
            )
            for name in names[:400]:
                yield Text(
                    "java", CODE, "/".join(name.split("/")[1:4]), archive.read(name).decode()
                )


def manual_texts() -> Iterator[Text]:
    """Yield manual pages as they are stored, and translated ones."""
    for path in sorted(SHARE.glob("man/man[1-8]/*.gz"), key=lambda path: stable(path.name))[:240]:
        yield Text("manual pages", ENGLISH, first_word(path.name), read(path))


def changelog_texts() -> Iterator[Text]:
    """Yield changelogs of installed packages."""
    for path in sorted(SHARE.glob("doc/*/changelog*.gz"), key=lambda path: stable(path.parent))[
        :200
    ]:
        yield Text("changelogs", ENGLISH, first_word(path.parent.name), read(path))


def prose_texts() -> Iterator[Text]:
    """Yield Emacs's news and notes, and licences: English in long stretches."""
    notes = [*(emacs_folder() / "etc").glob("[A-Z]*"), *SHARE.glob("common-licenses/*")]
    for path in sorted(path for path in notes if path.is_file()):
        yield Text("plain english", ENGLISH, path.name, read(path))


def catalog_body(path: Path) -> str:
    """Return the translated messages of one catalogue, a line each."""
    try:
        with path.open("rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
    messages = [text for text in catalog.values() if text and "Content-Type" not in text]
    return "\n".join(messages)[:LONGEST_TEXT]


def catalog_texts() -> Iterator[Text]:
    """Yield translations, by program: a program is on one side in all its languages."""
    places = [SHARE / "locale", Path(sysconfig.get_path("purelib"))]
    for place in places:
        for path in sorted(place.rglob("LC_MESSAGES/*.mo"), key=lambda path: stable(path.name)):
            kind = SCRIPT_OF.get(path.parent.parent.name)
            if kind and path.stat().st_size > 3_000:
                yield Text(kind, SCRIPTS, path.stem, catalog_body(path))


def tutorial_texts() -> Iterator[Text]:
    """Yield Emacs's tutorial in each of its languages."""
    decoders = {"cn": "gb18030", "zh": "big5", "ja": "iso2022_jp", "ko": "euc_kr"}
    for path in sorted((emacs_folder() / "etc/tutorials").glob("TUTORIAL*")):
        code = path.suffix.lstrip(".")
        body = read(path) or path.read_bytes().decode(decoders.get(code, "latin-1"), "replace")
        kind = SCRIPT_OF.get(code, "plain english")
        group = SCRIPTS if code in SCRIPT_OF else ENGLISH
        yield Text(kind, group, f"tutorial {code}", body)


def translated_manual_texts() -> Iterator[Text]:
    """Yield manual pages in other languages; a page is on one side in all its languages."""
    paths = SHARE.glob("man/*/man[1-8]/*.gz")
    for path in sorted(paths, key=lambda path: stable(path.name))[:1500]:
        kind = SCRIPT_OF.get(path.parent.parent.name)
        if kind:
            yield Text(kind, SCRIPTS, first_word(path.name), read(path))


def file_texts() -> Iterator[Text]:
    """Yield every text of this module's sources that is long enough to cut, a copied one once."""
    sources: list[Callable[[], Iterable[Text]]] = [
        plain_files,
        rust_texts,
        java_texts,
        manual_texts,
        changelog_texts,
        prose_texts,
        catalog_texts,
        tutorial_texts,
        translated_manual_texts,
    ]
    seen: set[int] = set()
    for text in chain.from_iterable(source() for source in sources):
        if len(text.body) >= 400 and hash(text.body) not in seen:
            seen.add(hash(text.body))
            yield text
