"""Corpus texts generated here: output of tools, logs, tables, encoded bytes, minified code."""

from __future__ import annotations

import base64
import json
import random
import re
import textwrap
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from tests.benchmarks.corpora_files import chosen, files_by_kind
from tests.benchmarks.corpora_git import git_texts
from tests.benchmarks.corpora_texts import CODE, DATA, Text, is_held_out, read, stable

WORDS = re.compile(r"(?<![A-Za-z])[A-Za-z]{4,12}(?![A-Za-z])")


@dataclass(frozen=True)
class Source:
    """A source file of the machine, to make tool output from."""

    origin: str
    path: Path
    body: str


@cache
def sources() -> tuple[Source, ...]:
    """Return source files in several languages, the same each time."""
    wanted = {"python", "elisp", "c", "perl", "javascript", "shell"}
    found = [
        Source(origin, path, read(path))
        for (kind, _), origins in files_by_kind().items()
        if kind in wanted
        for origin, path in list(chosen(origins))[::2]
    ]
    return tuple(sorted(found, key=lambda source: stable(source.path))[:900])


def shown_path(source: Source) -> str:
    """Return the path a tool prints: from the project's root on."""
    return "/".join(source.path.parts[1:][-4:]).removesuffix(".gz")


@cache
def by_origin() -> dict[str, list[Source]]:
    """Return the sources of each origin that has a few."""
    found: dict[str, list[Source]] = {}
    for source in sources():
        found.setdefault(source.origin, []).append(source)
    return found


def grep_texts() -> Iterator[Text]:
    """Yield lines `path:line:text` for a word that is frequent in an origin's files."""
    for origin, files in by_origin().items():
        rng = random.Random(origin)
        words = [word for source in files for word in WORDS.findall(source.body)[:400]]
        for word in rng.sample(sorted(set(words)), min(4, len(set(words)))):
            lines = [
                f"{shown_path(source)}:{number}:{line}"
                for source in files
                for number, line in enumerate(source.body.splitlines(), 1)
                if word in line
            ]
            yield Text("grep results", DATA, origin, "\n".join(lines[:300]))


def numbered_texts() -> Iterator[Text]:
    """Yield files as an agent reads them, each line with its number."""
    for source in sources()[::3]:
        lines = source.body.splitlines()
        tabbed = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1))
        yield Text("numbered source", CODE, source.origin, tabbed)


def folder_lists() -> Iterator[tuple[str, list[Path]]]:
    """Yield lists of real paths by origin, from packages and from the folders beside them."""
    lists: dict[str, set[Path]] = {}
    for origins in files_by_kind().values():
        for origin, paths in origins.items():
            lists.setdefault(origin, set()).update(paths)
    for origin in sorted(lists, key=stable):
        if len(lists[origin]) > 12:
            yield origin, sorted(lists[origin])[:400]


def path_texts() -> Iterator[Text]:
    """Yield plain lists of paths, absolute and relative, and long listings."""
    for origin, paths in list(folder_lists())[:160]:
        rng = random.Random(origin)
        short = ["/".join(path.parts[-rng.randint(2, 6) :]) for path in paths]
        yield Text("path lists", DATA, origin, "\n".join(short))
        yield Text("path lists", DATA, origin, "\n".join(map(str, paths)))
        yield Text("file listings", DATA, origin, "\n".join(map(long_line, paths)))
        yield Text("file listings", DATA, origin, grouped(paths))
        yield Text("trees", DATA, origin, tree(paths))


def when(rng: random.Random) -> datetime:
    """Return a random time of the last years."""
    return datetime(2019, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(200_000_000))


def long_line(path: Path) -> str:
    """Return a file as `ls -l` shows it."""
    rng = random.Random(str(path))
    name = rng.choice([path.name, "/".join(path.parts[-3:])])
    return f"-rw-r--r-- 1 root root {rng.randrange(200_000):>8} {when(rng):%b %d %H:%M} {name}"


def grouped(paths: list[Path]) -> str:
    """Return files under their folders, with sizes and dates, as our listing tool shows them."""
    lines: list[str] = []
    for path in paths:
        rng = random.Random(str(path))
        folder = "/".join(path.parts[-4:-1]) + "/"
        if folder not in lines:
            lines.append(folder)
        lines.append(f"  {path.name}  {rng.randrange(200_000)}  {when(rng):%Y-%m-%dT%H:%M:%S}")
    return "\n".join(lines)


def tree(paths: list[Path]) -> str:
    """Return files as `tree` draws them."""
    lines: list[str] = []
    last: tuple[str, ...] = ()
    for path in paths:
        parts = path.parts[1:]
        for depth, part in enumerate(parts):
            if parts[: depth + 1] != last[: depth + 1]:
                lines.append("│   " * depth + "├── " + part)
        last = parts
    return "\n".join(lines)


def number_texts() -> Iterator[Text]:
    """Yield matrices of numbers: integers or decimals of a few digits between blanks."""
    for seed in range(96):
        rng = random.Random(f"numbers {seed}")
        width, places = rng.randint(1, 6), rng.choice([0, 0, 1, 2, 4, 7])
        between = rng.choice([" ", " ", "  ", "\t", ", "])
        across = rng.randint(2, 20)
        cells = [f"{rng.random() * 10**width:.{places}f}" for _ in range(across * (3000 // across))]
        rows = [between.join(cells[at : at + across]) for at in range(0, len(cells), across)]
        yield Text("number tables", DATA, f"numbers {seed}", "\n".join(rows))


def boxed(rows: list[list[str]]) -> str:
    """Return a table as command line tools draw it, with lines between its columns."""
    width = 2 + max(len(cell) for row in rows for cell in row)
    rule = ["─" * width] * len(rows[0])
    body = ["│" + "│".join(f" {cell:<{width - 1}}" for cell in row) + "│" for row in rows]
    lines = ["┌" + "┬".join(rule) + "┐", *body[:1], "├" + "┼".join(rule) + "┤", *body[1:]]
    return "\n".join([*lines, "└" + "┴".join(rule) + "┘"])


MARKS_OF_STATE = "✓✗✅❌⚠→←⇒•…—“”★■▶"


def remark(words: list[str], rng: random.Random) -> str:
    """Return a line of chat or of a checklist that contains symbols."""
    picture = chr(rng.choice([rng.randrange(0x1F300, 0x1F650), rng.randrange(0x1F680, 0x1F6C6)]))
    said = rng.choices(words, k=rng.randint(3, 14))
    said.insert(rng.randrange(len(said)), rng.choice(MARKS_OF_STATE))
    lead = rng.choice([f"- {picture} ", f"{picture} ", "", f"{rng.choice(MARKS_OF_STATE)} "])
    return f"{lead}{' '.join(said).capitalize()}{rng.choice(['.', '!', ' ' + picture])}"


def remark_texts() -> Iterator[Text]:
    """Yield chat and checklists with pictures, ticks and arrows."""
    for origin in worded_origins():
        rng, words = random.Random(origin), vocabulary(origin)
        yield Text("symbols", DATA, origin, "\n".join(remark(words, rng) for _ in range(300)))


LOG_TEMPLATES = (
    "{t:%Y-%m-%d %H:%M:%S},{n:03d} INFO [{w}.{v}] {w} took {n} ms for {v} {u}",
    '{ip} - - [{t:%d/%b/%Y:%H:%M:%S +0000}] "GET /{w}/{v}/{n} HTTP/1.1" 200 {m} "-" "curl/7.8"',
    "{t:%b %d %H:%M:%S} host-{d} {w}[{m}]: {v} {x} from {ip} port {m}",
    'level=warn ts={t:%Y-%m-%dT%H:%M:%S.%fZ} caller={w}.go:{n} msg="{v} {w} failed" err={x} n={m}',
    "[{m}.{n:06d}] {w}: {v} {x}:{d} at 0x{h}",
    '{{"time":"{t:%Y-%m-%dT%H:%M:%SZ}","level":"debug","{w}":{n},"{v}":"{u}","m":{m}}}',
    "{t:%H:%M:%S.%f} | DEBUG    | {w}.{v}:{x}:{n} - {v} {u} -> {m}",
    "E {t:%m%d %H:%M:%S} {m} {w}_{v}.cc:{n}] Check failed: {x} == {d} ({n} vs. {m})",
    "{t:%Y/%m/%d %H:%M:%S} [error] {m}#{n}: *{d} {w} {v} while reading, client: {ip}, server: {x}",
    "tests/{w}/test_{v}.py::test_{x}_{w} PASSED [ {d}%] {n}.{d}s",
    "npm warn {w}@{d}.{n}.0 {v}: {x} will be removed, use {w}-{v}@^{d}.{d}.{n}",
    "   Compiling {w}-{v} v0.{d}.{n} (/build/{x}/{w})",
    "W{t:%m%d} {ip}:{m} {w}/{v} [{h}] {x} retry={d} elapsed={n}.{m}us",
    '<{d}>1 {t:%Y-%m-%dT%H:%M:%S+00:00} {w} {v} {m} - [{x}@{n} seq="{m}"] {w} {x} {v}',
    "{t:%Y-%m-%d %H:%M:%S.%f}+00 [{m}] {w}@{v} LOG:  duration: {n}.{d} ms  execute <unnamed>: {x}",
    "  {d:>2}%|{x:<20}| {n}/{m} [{t:%M:%S}<{t:%S:%M}, {d}.{d}it/s, loss=0.{m}, {w}=0.{n}]",
)


def log_line(template: str, words: list[str], rng: random.Random) -> str:
    """Return one line of a log."""
    ip = ".".join(str(rng.randrange(256)) for _ in range(4))
    numbers = {"n": rng.randrange(1000), "m": rng.randrange(100_000), "d": rng.randrange(1, 100)}
    names = dict(zip("wvx", (rng.choice(words) for _ in range(3)), strict=True))
    noise = {"u": uuid.UUID(int=rng.getrandbits(128)), "h": f"{rng.getrandbits(48):012x}"}
    return template.format(t=when(rng), ip=ip, **numbers, **names, **noise)


@cache
def vocabulary(origin: str) -> list[str]:
    """Return words that an origin's sources use."""
    words = {word.lower() for file in by_origin()[origin] for word in WORDS.findall(file.body)}
    return sorted(words, key=stable)[:300]


@cache
def worded_origins() -> list[str]:
    """Return the origins with enough words to make tables and logs from."""
    return [origin for origin in sorted(by_origin(), key=stable) if len(vocabulary(origin)) > 80][
        :64
    ]


def log_texts() -> Iterator[Text]:
    """Yield logs in many formats; a format is on one side only, and so are its words."""
    for at, template in enumerate(LOG_TEMPLATES):
        rng = random.Random(template)
        side = is_held_out(template)
        origins = [origin for origin in worded_origins() if is_held_out(origin) == side]
        words = vocabulary(origins[at % len(origins)])
        for _ in range(4):
            lines = [log_line(template, words, rng) for _ in range(400)]
            yield Text("logs", DATA, template, "\n".join(lines))


COLUMNS: tuple[Callable[[random.Random, list[str]], object], ...] = (
    lambda rng, _: rng.randrange(100_000),
    lambda rng, _: f"{rng.gauss(0, 40):.{rng.randrange(1, 9)}f}",
    lambda rng, words: rng.choice(words).title(),
    lambda rng, words: " ".join(rng.choices(words, k=4)),
    lambda rng, _: f"{when(rng):%Y-%m-%d}",
    lambda rng, words: f"{rng.choice(words)}@{rng.choice(words)}.org",
    lambda rng, _: uuid.UUID(int=rng.getrandbits(128)),
    lambda rng, _: rng.choice(["true", "false", "", "NULL"]),
)


def table_rows(origin: str) -> list[list[str]]:
    """Return a table whose columns depend on the origin's name."""
    rng, words = random.Random(origin), vocabulary(origin)
    columns = rng.sample(COLUMNS, rng.randint(3, 7))
    return [[str(column(rng, words)) for column in columns] for _ in range(400)]


def table_texts() -> Iterator[Text]:
    """Yield generated tables, as CSV, tab separated, aligned, and as JSON lines."""
    for at, origin in enumerate(worded_origins()):
        rows, names = table_rows(origin), vocabulary(origin)
        records = [json.dumps(dict(zip(names, row, strict=False))) for row in rows]
        yield Text("csv", DATA, origin, "\n".join(map(",\t;"[at % 3].join, rows)))
        yield Text("json lines", DATA, origin, "\n".join(records))
        wide = ["| " + " | ".join(f"{cell:<14}" for cell in row) + " |" for row in rows]
        boxes = [boxed(rows[top : top + 2 + at % 7]) for top in range(0, 400, 2 + at % 7)]
        yield Text("boxed tables", DATA, origin, "\n\n".join(boxes))
        yield Text("aligned tables", DATA, origin, "\n".join(wide))


def hex_dump(raw: bytes) -> str:
    """Return bytes as xxd shows them."""
    lines = []
    for at in range(0, len(raw), 16):
        row = raw[at : at + 16]
        pairs = " ".join(row[pair : pair + 2].hex() for pair in range(0, len(row), 2))
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}: {pairs:<39}  {shown}")
    return "\n".join(lines)


def encoded_texts() -> Iterator[Text]:
    """Yield bytes in base64 and hexadecimal, wrapped, unbroken, and as dumps: noise, and files."""
    for at, source in enumerate(sources()[::4]):
        noise = random.Random(source.origin).randbytes(18_000)
        raw = noise if at % 2 else source.body.encode()[:18_000]
        packed = base64.b64encode(raw).decode()
        yield Text("base64", DATA, source.origin, packed)
        yield Text("base64", DATA, source.origin, "\n".join(textwrap.wrap(packed, 76)))
        yield Text("hex", DATA, source.origin, raw.hex())
        yield Text("hex dumps", DATA, source.origin, hex_dump(raw))


ALPHABETS = {
    "dna": "ACGT",
    "protein": "ACDEFGHIKLMNPQRSTVWY",
    "base 32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "letters": "abcdefghijklmnopqrstuvwxyz",
    "dna, small": "acgt",
    "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "decimal": "0123456789",
    "marks": "!@#$%^&*()[]{}<>?/|:;,.+-=~`'\"\\",
    "printable": "".join(map(chr, range(33, 127))),
}


def sequence_texts() -> Iterator[Text]:
    """Yield long unbroken runs of one alphabet, on lines of one width: the hard cases."""
    for name, alphabet in ALPHABETS.items():
        for seed in range(24):
            rng = random.Random(f"{name} {seed}")
            width = rng.choice([20, 60, 70, 120, 4000])
            rows = ["".join(rng.choices(alphabet, k=width)) for _ in range(12_000 // width)]
            kind = "marks and bytes" if name in {"marks", "printable"} else "sequences"
            yield Text(kind, DATA, f"{name} {seed}", "\n".join(rows))


def minified(body: str) -> str:
    """Return a script without comments, indentation, spare spaces, and long local names."""
    bare = re.sub(r"/\*.*?\*/|(?m:^\s*//.*$)", "", body, flags=re.DOTALL)
    names = dict.fromkeys(re.findall(r"\b(?:const|let|var) (\w{3,})", bare))
    for at, name in enumerate(names):
        bare = re.sub(rf"(?<![.\w]){name}\b", "abcdefghijklmnopqrstuvwxyz"[at % 26], bare)
    return re.sub(r"\s*([{}();,=<>+*?:&|])\s*", r"\1", re.sub(r"\s+", " ", bare))


def minified_texts() -> Iterator[Text]:
    """Yield scripts of installed packages, minified here."""
    scripts = files_by_kind().get(("javascript", CODE), {})
    for origin, path in chosen(scripts):
        body = read(path)
        if len(body) < 120_000:
            yield Text("javascript minified", CODE, origin, minified(body))


def made_texts() -> Iterator[Text]:
    """Yield every text of this module's sources that is long enough to cut."""
    makers: list[Callable[[], Iterator[Text]]] = [
        grep_texts,
        numbered_texts,
        path_texts,
        log_texts,
        remark_texts,
        sequence_texts,
        number_texts,
        table_texts,
        encoded_texts,
        minified_texts,
        lambda: git_texts(by_origin_bodies()),
    ]
    for maker in makers:
        yield from (text for text in maker() if len(text.body) >= 400)


def by_origin_bodies() -> dict[str, dict[str, str]]:
    """Return for each origin its files' shown paths and contents."""
    return {
        origin: {shown_path(source): source.body for source in files}
        for origin, files in by_origin().items()
    }
