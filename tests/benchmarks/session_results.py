"""Results as the tools of a session would return them, from real git and rg output."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from efrit_budget.project.search.ripgrep import find

TOKENS_MEDIAN, TOKENS_SPREAD = 2_100, 0.8
LARGEST, HUGE, HUGE_SHARE = 7_000, 60_000, 0.006
CHARS_PER_TOKEN = 2.9
MOST_HITS = 150


@dataclass(frozen=True)
class Made:
    """A call, its result, and the line that the tool's compressor would make of it."""

    tool: str
    arguments: Mapping[str, object]
    text: str
    summary: str


class Maker:
    """Makes calls at random, in the mix of a session that explores a repository."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self._root = root
        self._rng = rng
        self._kinds: list[tuple[Callable[[int], Made], int]] = [
            (self._listing, 15),
            (self._search, 32),
            (self._read, 33),
            (self._diff, 9),
            (self._show, 5),
            (self._log, 3),
            (self._blame, 3),
        ]

    def make(self) -> Made:
        """Return a random call, trying again if the result is nearly empty."""
        while True:
            kind = self._rng.choices(
                [each for each, _ in self._kinds], [weight for _, weight in self._kinds]
            )[0]
            made = kind(self._size())
            if len(made.text) > 60:
                return made

    def _size(self) -> int:
        """Draw a size in characters, now and then far above any allowance."""
        if self._rng.random() < HUGE_SHARE:
            return int(HUGE * CHARS_PER_TOKEN * (0.3 + 0.7 * self._rng.random()))
        tokens = TOKENS_MEDIAN * self._rng.lognormvariate(0, TOKENS_SPREAD)
        return int(min(LARGEST, tokens) * CHARS_PER_TOKEN)

    @cached_property
    def _files(self) -> list[str]:
        return self._git("ls-files").splitlines()

    @cached_property
    def _revisions(self) -> list[str]:
        return self._git("log", "--format=%h").splitlines()[:-1]

    def _git(self, *arguments: str) -> str:
        return self._run("git", "-c", "core.quotePath=false", *arguments)

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self._root, capture_output=True, check=False)
        return done.stdout.decode(errors="replace")

    def _file(self) -> str:
        return self._rng.choice(self._files)

    def _folder(self) -> str:
        """Return a random folder that contains files, directly or further down."""
        parents = [str(parent) for parent in PurePosixPath(self._file()).parents]
        return self._rng.choice(parents[:-1] or parents)

    def _listing(self, size: int) -> Made:
        folder = self._folder() if size < 30_000 else "."
        names = _cut(self._git("ls-files", "--", folder), size)
        found = names.splitlines()
        endings = Counter(PurePosixPath(name).suffix or "none" for name in found).most_common(5)
        types = ", ".join(f"{ending} ({count})" for ending, count in endings)
        arguments = {"path": folder, "max_files": len(found)}
        summary = f"Listed {len(found)} files in {folder}. Types: {types}"
        return Made("project_files", arguments, names, summary)

    def _search(self, size: int) -> Made:
        body = (self._root / self._file()).read_text(errors="replace")
        words = re.findall(r"[A-Za-z_]{5,24}", body) or ["import"]
        pattern = self._rng.choice(words)
        folder = self._folder() if self._rng.random() < 0.7 else "."
        options = ["-n", "--heading", "--sort=path", "--max-columns=240", "--max-count=12"]
        rg = str(find(prefer_system=False))
        text = _cut(self._run(rg, *options, "-F", "-e", pattern, folder), size)
        hits = [line for line in text.splitlines() if re.match(r"\d+:", line)]
        files = [line for line in text.splitlines() if line and not re.match(r"\d+:", line)]
        summary = f"Found {len(hits)} matches for {pattern!r} in {len(files)} files: " + ", ".join(
            files[:6]
        )
        return Made(
            "search_content", {"pattern": pattern, "path": folder, "literal": True}, text, summary
        )

    def _read(self, size: int) -> Made:
        path = self._file()
        lines = (self._root / path).read_text(errors="replace").splitlines()
        first = self._rng.randrange(max(1, len(lines) * 2 // 3))
        numbered = "".join(
            f"{number}\t{line}\n" for number, line in enumerate(lines[first:], first + 1)
        )
        text = _cut(numbered, size)
        last = first + text.count("\n")
        summary = f"Read {path} ({len(lines):,} lines), lines {first + 1}-{last}."
        arguments = {"path": path, "start_line": first + 1, "end_line": last}
        return Made("read_file", arguments, text, summary)

    def _diff(self, size: int) -> Made:
        start = self._rng.randrange(len(self._revisions) - 1)
        span = max(1, size // 8_000)
        older = self._revisions[min(start + span, len(self._revisions) - 1)]
        arguments = {"revision": f"{older}..{self._revisions[start]}"}
        text = _cut(self._git("diff", older, self._revisions[start]), size)
        return Made("vcs_diff", arguments, text, f"Diff: {_changes(text)}")

    def _show(self, size: int) -> Made:
        revision = self._rng.choice(self._revisions)
        text = _cut(self._git("show", revision), size)
        return Made(
            "vcs_show", {"revision": revision}, text, f"Commit {revision}: {_changes(text)}"
        )

    def _log(self, size: int) -> Made:
        limit = self._rng.randint(3, 30)
        skip = self._rng.randrange(20)
        text = _cut(self._git("log", "--stat", f"--skip={skip}", f"-{limit}"), size)
        arguments = {"limit": limit, "skip": skip, "stat": True}
        return Made("vcs_log", arguments, text, f"Log: {limit} commits from the {skip + 1}th on.")

    def _blame(self, size: int) -> Made:
        path = self._file()
        text = _cut(self._git("blame", path), size)
        summary = f"Blamed {path}, {text.count(chr(10))} lines."
        return Made("vcs_blame", {"path": path, "end_line": text.count("\n")}, text, summary)


def _cut(text: str, size: int) -> str:
    """Return the first lines that together have about SIZE characters."""
    return text if len(text) <= size else text[: text.rfind("\n", 0, size) + 1]


def _changes(diff: str) -> str:
    files = re.findall(r"^diff --git a/(\S+)", diff, re.MULTILINE)
    added = len(re.findall(r"^\+", diff, re.MULTILINE))
    removed = len(re.findall(r"^-", diff, re.MULTILINE))
    return f"{len(files)} files, +{added}/-{removed}. Modified: {', '.join(files[:5])}"
