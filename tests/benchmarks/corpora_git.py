"""Corpus texts that git prints about repositories made here from the machine's sources."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.benchmarks.corpora_texts import DATA, Text, first_word, is_held_out, read, stable

REPOSITORIES = 48
COMMITS = 24
MESSAGES_FALLBACK = ("Fix a crash on empty input", "Add a test", "Rename, and say why in the docs")


@dataclass(frozen=True)
class History:
    """The authors and messages of commits, taken from a package's changelog."""

    authors: list[str]
    messages: list[str]


@cache
def histories(*, held_out: bool) -> list[History]:
    """Return the changelogs of one side, as histories."""
    found = []
    for path in sorted(Path("/usr/share/doc").glob("*/changelog*.gz"), key=stable)[:300]:
        body = read(path)
        authors = re.findall(r"^ -- (.+>)", body, re.MULTILINE)
        messages = re.findall(r"^  [*-] (.+(?:\n    .+)*)", body, re.MULTILINE)
        if (
            is_held_out(first_word(path.parent.name)) == held_out
            and len(messages) > COMMITS
            and authors
        ):
            found.append(History(authors, [re.sub(r"\n +", "\n", text) for text in messages]))
    return found or [History(["A. Writer <a@example.org>"], list(MESSAGES_FALLBACK))]


def blob(path: str, text: str) -> str:
    """Return one file of a commit, for fast-import."""
    return f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n"


def commit(at: int, history: History, rng: random.Random, files: dict[str, str]) -> str:
    """Return one commit, for fast-import."""
    message = rng.choice(history.messages)
    seconds = 1_500_000_000 + at * 500_000 + rng.randrange(400_000)
    author = rng.choice(history.authors)
    head = f"commit refs/heads/main\ncommitter {author} {seconds} +0100\n"
    body = "".join(blob(path, text) for path, text in files.items())
    return f"{head}data {len(message.encode())}\n{message}\n{body}\n"


def grown(text: str, at: int, born: list[int]) -> str:
    """Return a file as it stood at a commit: the lines added by then."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line, when in zip(lines, born, strict=False) if when <= at)


def stream(origin: str, files: dict[str, str]) -> str:
    """Return a whole repository for fast-import: files that grow by runs of lines."""
    rng = random.Random(origin)
    history = rng.choice(histories(held_out=is_held_out(origin)))
    born = {path: births(text, rng) for path, text in files.items()}
    commits = []
    for at in range(COMMITS):
        touched = rng.sample(sorted(files), min(len(files), rng.randint(1, 4)))
        touched = sorted(files) if at in {0, COMMITS - 1} else touched
        now = {path: grown(files[path], at, born[path]) for path in touched}
        commits.append(commit(at, history, rng, now))
    return "".join(commits)


def births(text: str, rng: random.Random) -> list[int]:
    """Return for each line the commit that adds it; neighbours come together."""
    born: list[int] = []
    while len(born) < text.count("\n") + 1:
        born.extend([rng.choice([0, rng.randrange(COMMITS)])] * rng.randint(1, 20))
    return born


def git(folder: str, *arguments: str, given: str = "") -> str:
    """Return the output of a git command."""
    command = ["git", "-C", folder, "-c", "core.quotePath=false", *arguments]
    done = subprocess.run(command, input=given.encode(), capture_output=True, check=False)
    return done.stdout.decode(errors="replace")


def changed_tree(folder: Path, files: dict[str, str], rng: random.Random) -> None:
    """Change some files, add some and delete some, for `git status` to report."""
    for path, text in files.items():
        fate = rng.random()
        if fate < 0.5:
            (folder / path).write_text(text + "\nchanged\n")
        elif fate < 0.6:
            (folder / path).unlink()
        if fate > 0.3:
            beside = (folder / path).with_suffix(f".{rng.choice(['orig', 'new', 'bak'])}")
            beside.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text("new")


def repository_texts(origin: str, files: dict[str, str], folder: str) -> Iterator[Text]:
    """Build a repository from files and yield git's logs, diffs and other output about it."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "fast-import", "--quiet", "--force", given=stream(origin, files))
    git(folder, "reset", "-q", "--hard", "main")
    yield Text("git log", DATA, origin, git(folder, "log"))
    yield Text("git log", DATA, origin, git(folder, "log", "--stat"))
    yield Text("git log", DATA, origin, git(folder, "log", "--oneline", "--name-status"))
    yield Text("git diff", DATA, origin, git(folder, "diff", "main~9", "main"))
    yield Text("git diff", DATA, origin, git(folder, "show", "main~3", "main~4", "main~5"))
    for path in sorted(files)[:3]:
        yield Text("git blame", DATA, origin, git(folder, "blame", path))
    changed_tree(Path(folder), files, random.Random(origin))
    yield Text("git status", DATA, origin, git(folder, "status", "-uall"))
    yield Text("git status", DATA, origin, git(folder, "status", "--porcelain", "-uall"))


def git_texts(bodies: dict[str, dict[str, str]]) -> Iterator[Text]:
    """Yield git's output about a repository for each origin with at least four files."""
    if not shutil.which("git"):
        return
    many = [origin for origin in sorted(bodies, key=stable) if len(bodies[origin]) >= 4]
    for origin in many[:REPOSITORIES]:
        files = {path.replace(" ", "_"): text for path, text in bodies[origin].items()}
        with tempfile.TemporaryDirectory() as folder:
            yield from repository_texts(origin, files, folder)
