"""The tools that list, search, read and compare, beside the bare programs that do the same."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from efrit_budget.project.search import ripgrep
from tests.benchmarks import eyes_repository as made
from tests.benchmarks.table import Row
from tests.benchmarks.tokenizers_real import count
from tests.sidecar import SERVE, Sidecar

ROUNDS, FIRST_ROUNDS = 9, 5
MODELS = "[default]\nwindow = 10_000_000\nfactor = 1.0\n"
"""The tokenizer at hand is one of those that our estimate is fitted to."""
ENDLESS = {"total": 9_000_000, "response": 1_000}
RARE = "_unlikely_to_be_there"
COMMON_WORD, COMMON_PATTERN = "or", r"[a-z]+_[a-z]+|[a-z]+\("
ALLOWANCES = [None, 300, 1_000, 3_000]


class Eyes:
    """A sidecar with a session on a folder, and what it delivered."""

    delivered: list[tuple[int, str]]

    def __init__(self, sidecar: Sidecar, root: Path) -> None:
        self._sidecar = sidecar
        opened = sidecar.request("session/open", root=str(root), limits=ENDLESS)
        self._session = opened["session_id"]
        self._uses = 0
        self.delivered = []

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the envelope of a call as Emacs asks for it, without data."""
        return self._ask(name, arguments, data=False)

    def call_for_data(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the envelope of a call, data included."""
        return self._ask(name, arguments, data=True)

    def _ask(self, name: str, arguments: dict[str, Any], *, data: bool) -> dict[str, Any]:
        self._uses += 1
        envelope: dict[str, Any] = self._sidecar.request(
            "tools/call",
            session_id=self._session,
            name=name,
            arguments=arguments,
            tool_use_id=f"use-{self._uses}",
            include_data=data,
        )
        if envelope["status"] != "success":
            raise RuntimeError(f"{name} {arguments}: {envelope['text']}")
        self.delivered.append((int(arguments.get("max_tokens") or 8_000), envelope["text"]))
        return envelope

    def next_page(self, name: str, envelope: dict[str, Any]) -> float:
        """Return the milliseconds that the page after this envelope's takes."""
        token = envelope["text"].split("continuation_token ")[1].split()[0]
        return _milliseconds(lambda: self.call(name, continuation_token=token))


def run() -> Iterator[Row]:
    """Yield every row of the table."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        os.environ["EFRIT_BUDGET_HOME"] = folder
        Path(folder, "config").mkdir()
        Path(folder, "config", "models.toml").write_text(MODELS)
        with Sidecar(command=SERVE) as sidecar:
            sidecar.request("initialize", client={"name": "bench"}, protocol_version=1)
            yield from _all(sidecar)


def _all(sidecar: Sidecar) -> Iterator[Row]:
    delivered: list[tuple[int, str]] = []
    pages: list[float] = []
    for files, root in (("10,000", made.small()), ("100,000", made.large())):
        eyes = Eyes(sidecar, root)
        yield from _searching(eyes, root, files, pages)
        yield from _listing(eyes, root, files, pages)
        delivered += eyes.delivered
    yield from _diff(eyes := Eyes(sidecar, made.changed()), made.changed(), pages)
    delivered += eyes.delivered
    yield from _large_file(sidecar, pages)
    worst = max(pages)
    yield Row(
        f"next page by token, median of {len(pages)}",
        f"{statistics.median(pages):.1f} ms (worst {worst:.1f})",
        bar="≤ 5 ms",
        holds=statistics.median(pages) <= 5,
    )
    yield from _value(Eyes(sidecar, made.small()))
    yield from _allowances(Eyes(sidecar, made.small()), delivered)
    peak = _kib(sidecar.process.pid, "VmHWM") / 1024
    yield Row("peak memory over all of this", f"{peak:.0f} MB", bar="≤ 190 MB", holds=peak <= 190)


def _searching(eyes: Eyes, root: Path, files: str, pages: list[float]) -> Iterator[Row]:
    rg = str(ripgrep.find(prefer_system=False))
    bare = [rg, "--no-config", "--line-number", "-F", RARE, "."]
    _output(bare, root)
    ours, reference = _taking_turns(
        lambda: eyes.call("search_content", pattern=RARE, literal=True),
        lambda: _output(bare, root),
    )
    yield _against(f"search_content, rare literal, {files} files", ours, reference, 1.5, 10)
    times = [
        (_first(root), _milliseconds(lambda: _output(bare, root))) for _ in range(FIRST_ROUNDS)
    ]
    first, reference = (statistics.median(column) for column in zip(*times, strict=True))
    yield _ratio("… the first time in two minutes", first, reference, 1.6)
    for what, arguments, pattern in (
        ("common regex", {"pattern": COMMON_PATTERN}, ["-e", COMMON_PATTERN]),
        (
            "very common word",
            {"pattern": COMMON_WORD, "literal": True, "case": "sensitive"},
            ["-F", COMMON_WORD],
        ),
    ):
        found = eyes.call_for_data("search_content", **arguments)
        whole = [rg, "--no-config", "--json", *pattern]
        ours, reference = _taking_turns(
            partial(eyes.call, "search_content", **arguments),
            partial(_output, [*whole, "."], root, through="cat"),
        )
        total = found["data"]["total"]
        yield _against(
            f"search_content, {what}, {files} files ({total:,} matches)", ours, reference, 1.5, 20
        )
        pages.append(eyes.next_page("search_content", found))


def _first(root: Path) -> float:
    """Return the milliseconds of the first search of a repository, after one elsewhere."""
    with Sidecar(command=SERVE) as sidecar, tempfile.TemporaryDirectory() as elsewhere:
        sidecar.request("initialize", client={"name": "bench"}, protocol_version=1)
        Eyes(sidecar, Path(elsewhere)).call("search_content", pattern=RARE, literal=True)
        eyes = Eyes(sidecar, root)
        return _milliseconds(lambda: eyes.call("search_content", pattern=RARE, literal=True))


def _listing(eyes: Eyes, root: Path, files: str, pages: list[float]) -> Iterator[Row]:
    git = ["git", "ls-files", "-co", "--exclude-standard"]
    found = eyes.call("project_files")
    ours, reference = _taking_turns(lambda: eyes.call("project_files"), lambda: _output(git, root))
    yield _against(f"project_files, {files} files", ours, reference, 1.5, 10)
    pages.append(eyes.next_page("project_files", found))


def _diff(eyes: Eyes, root: Path, pages: list[float]) -> Iterator[Row]:
    found = eyes.call("vcs_diff")
    ours, reference = _taking_turns(
        lambda: eyes.call("vcs_diff"), lambda: _output(["git", "diff"], root)
    )
    yield _against("vcs_diff, 500 files", ours, reference, 1.3, 10)
    pages.append(eyes.next_page("vcs_diff", found))


def _large_file(sidecar: Sidecar, pages: list[float]) -> Iterator[Row]:
    log = made.log()
    eyes = Eyes(sidecar, log.parent)
    eyes.call("read_file", path="session-repository-1/.git/HEAD", max_tokens=100)
    before = _kib(sidecar.process.pid, "VmRSS")
    times = [_milliseconds(lambda: eyes.call("read_file", path=log.name)) for _ in range(ROUNDS)]
    more = max(0, _kib(sidecar.process.pid, "VmRSS") - before) / 1024
    first = statistics.median(times)
    yield Row(
        "read_file, first page of 1 GB",
        f"{first:.1f} ms, {more:.1f} MB more",
        bar="≤ 10 ms, ≤ 10 MB",
        holds=first <= 10 and more <= 10,
    )
    sed = ["sed", "-n", "5000000,5000200p;5000200q", log.name]
    _output(sed, log.parent)
    there: dict[str, Any] = {"path": log.name, "start_line": 5_000_000, "end_line": 5_000_200}
    once = _milliseconds(lambda: eyes.call("read_file", **there))
    reference = statistics.median(
        [_milliseconds(lambda: _output(sed, log.parent)) for _ in range(3)]
    )
    yield _ratio("read_file, line 5,000,000, the first time", once, reference, 1.2)
    found = eyes.call("read_file", **there)
    again = statistics.median(
        [_milliseconds(lambda: eyes.call("read_file", **there)) for _ in range(ROUNDS)]
    )
    yield _ratio("read_file, line 5,000,000, after that", again, reference, 0.1)
    if "continuation_token " in found["text"]:
        pages.append(eyes.next_page("read_file", found))


# What a model gets


def _value(eyes: Eyes) -> Iterator[Row]:
    """Yield rows that compare tokens: our text, and the same content as indented JSON."""
    found = eyes.call_for_data("search_content", pattern=COMMON_PATTERN)
    matches = found["data"]["matches"]
    yield _density("matches for 1,000 real tokens", found["text"], len(matches), _json_of(matches))
    listed = eyes.call_for_data("project_files")
    files = [{"path": path} for path in listed["data"]["files"]]
    yield _density("files for 1,000 real tokens", listed["text"], len(files), _json_of(files))


def _json_of(items: list[dict[str, Any]]) -> str:
    """Return the items as indented JSON with metadata for each."""
    root = made.small()
    shown = []
    for item in items:
        path = root / item["path"]
        facts = path.stat()
        shown.append(
            {
                **item,
                "absolute_path": str(path),
                "size": facts.st_size,
                "modified": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(facts.st_mtime)),
            }
        )
    return json.dumps(shown, indent=2, ensure_ascii=False)


def _density(what: str, text: str, items: int, as_json: str) -> Row:
    ours_tokens, json_tokens = count("claude", [text, as_json])
    ours, theirs = 1000 * items / ours_tokens, 1000 * items / json_tokens
    ratio = ours / theirs
    return Row(what, f"{ours:.1f}", f"{theirs:.1f}", f"{ratio:.2f}", "≥ 3", ratio >= 3)


def _allowances(eyes: Eyes, delivered: list[tuple[int, str]]) -> Iterator[Row]:
    """Yield rows with the real tokens of all pages, and of some more with smaller allowances."""
    for allowance in ALLOWANCES:
        limit: dict[str, Any] = {} if allowance is None else {"max_tokens": allowance}
        for name, arguments in _looks():
            eyes.call(name, **arguments, **limit)
    texts = [*delivered, *eyes.delivered]
    real = count("claude", [text for _, text in texts])
    shares = [tokens / allowed for (allowed, _), tokens in zip(texts, real, strict=True)]
    within = sum(share <= 1 for share in shares) / len(shares)
    yield Row(
        f"{len(shares)} delivered texts against their allowance, in real tokens",
        f"{within:.1%} within, the largest {max(shares):.2f}x",
        bar="≥ 98%, ≤ 1.15x",
        holds=within >= 0.98 and max(shares) <= 1.15,
    )


def _looks() -> Iterator[tuple[str, dict[str, Any]]]:
    root = made.small()
    names = subprocess.check_output(["git", "-C", str(root), "ls-files"], text=True).splitlines()
    for name in names[::250]:
        yield "read_file", {"path": name}
        yield "search_content", {"pattern": "return|define", "path": str(Path(name).parent)}
    for folder in sorted({name.split("/")[0] for name in names}):
        yield "project_files", {"path": folder}
        yield "project_files", {"path": folder, "metadata": True}
    yield "vcs_log", {}
    yield "vcs_show", {"revision": "HEAD~3"}


# Measuring


def _milliseconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000


def _taking_turns(
    ours: Callable[[], object], reference: Callable[[], object]
) -> tuple[float, float]:
    """Return the medians of both functions, run in turns so that disturbances affect both."""
    ours(), reference()
    times = [(_milliseconds(ours), _milliseconds(reference)) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in times), statistics.median(two for _, two in times)


def _output(command: list[str], folder: Path, *, through: str | None = None) -> int:
    """Run a program and read all it writes."""
    if through is not None:
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as first:
            done = subprocess.run([through], stdin=first.stdout, capture_output=True, check=True)
        return len(done.stdout)
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return len(done.stdout)


def _against(what: str, ours: float, reference: float, most: float, plus: float) -> Row:
    return Row(
        what,
        f"{ours:.1f} ms",
        f"{reference:.1f} ms",
        f"{ours / reference:.2f}x",
        f"≤ {most}x + {plus:.0f} ms",
        ours <= most * reference + plus,
    )


def _ratio(what: str, ours: float, reference: float, most: float) -> Row:
    ratio = ours / reference
    return Row(
        what, f"{ours:.1f} ms", f"{reference:.1f} ms", f"{ratio:.2f}x", f"≤ {most}x", ratio <= most
    )


def _kib(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


if __name__ == "__main__":
    for row in run():
        sys.stdout.write(f"{row}\n")
