"""The repositories of 10,000 and 100,000 files, and the log, that `bench_eyes` reads."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.packages import CACHE
from tests.benchmarks.session_repository import repository

LARGE = CACHE / "eyes-repository-1"
LARGE_FILES = 100_000
LARGE_LINES = 30
CHANGED = CACHE / "eyes-changed-1"
CHANGED_FILES = 500
LOG = CACHE / "eyes-1.log"
LOG_BYTES = 2**30
SEED = 20261118


def small() -> Path:
    """Return the repository of 10,000 files."""
    return repository()


def large() -> Path:
    """Return a repository of 100,000 files: the small one's, each cut short, ten times."""
    return _made(LARGE, _make_large)


def changed() -> Path:
    """Return the small repository with 500 files changed and not committed."""
    return _made(CHANGED, _make_changed)


def log() -> Path:
    """Return a log of 1 GiB."""
    if not LOG.exists():
        unfinished = LOG.with_suffix(".unfinished")
        rng = random.Random(SEED)
        block = "".join(_log_line(rng) for _ in range(100_000)).encode()
        with unfinished.open("wb") as file:
            while file.tell() < LOG_BYTES:
                file.write(block)
        unfinished.rename(LOG)
    return LOG


def _log_line(rng: random.Random) -> str:
    moment = f"2026-11-{rng.randint(1, 18):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    level = rng.choice(["INFO", "INFO", "DEBUG", "WARNING"])
    worker = f"worker-{rng.randint(1, 64)}"
    return f"{moment} {level} {worker} took {rng.random():.6f} s for {rng.getrandbits(48):x}\n"


def _made(folder: Path, make: Callable[[Path], None]) -> Path:
    if not folder.exists():
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def _files() -> list[tuple[str, bytes]]:
    base = small()
    names = subprocess.check_output(["git", "-C", str(base), "ls-files", "-z"]).split(b"\0")
    found = [(name.decode(), (base / name.decode()).read_bytes()) for name in names if name]
    return sorted(found)


def _make_large(folder: Path) -> None:
    files = _files()
    for number in range(LARGE_FILES):
        name, body = files[number % len(files)]
        path = folder / f"part{number // len(files):02}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = body.split(b"\n", LARGE_LINES)[:LARGE_LINES]
        path.write_bytes(b"\n".join(lines) + b"\n%d\n" % number)
    _commit(folder)


def _make_changed(folder: Path) -> None:
    files = _files()
    for name, body in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    _commit(folder)
    rng = random.Random(SEED)
    for name, body in rng.sample(files, CHANGED_FILES):
        lines = body.split(b"\n")
        for _ in range(5):
            at = rng.randrange(len(lines))
            lines[at : at + 1] = [lines[at] + b" changed", b"one more line"]
        (folder / name).write_bytes(b"\n".join(lines))


def _commit(folder: Path) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    git = ["git", "-C", str(folder), *identity]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "All of it"], check=True)
    subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True)
