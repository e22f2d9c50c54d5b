"""The spine: starting, calling and carrying, from Emacs and from a bare client."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from tests.benchmarks.table import Row
from tests.sidecar import SERVE, Sidecar

ROOT = Path(__file__).parents[2]
ECHO_SERVER = ROOT / "tests" / "benchmarks" / "echo_server.py"
TOOLS = ROOT / "tests" / "tools_for_tests"
STARTS = 15


def run() -> list[Row]:
    """Every row of the spine's table."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        os.environ["EFRIT_BUDGET_HOME"] = str(Path(folder, "home"))
        os.environ["EFRIT_BUDGET_TOOLS__PATH"] = json.dumps([str(TOOLS)])
        emacs = Emacs(Path(folder, "elisp"))
        return [
            _start(),
            emacs.against("round trip from Emacs, median of 300", "efrit-bench-round-trips", 1.9),
            emacs.against("1 MB reply into Emacs, median of 21", "efrit-bench-large-replies", 1.3),
            _status(emacs),
            _memory(),
            _reading(emacs),
        ]


class Emacs:
    """A batch Emacs with the package as installing it leaves it: byte-compiled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT / "elisp", folder, ignore=shutil.ignore_patterns("demo", "*.elc"))
        files = [str(file) for file in sorted(folder.glob("*.el"))]
        self._run("-f", "batch-byte-compile", *files)

    def measure(self, function: str) -> dict[str, float]:
        """Return the milliseconds that a function of bench.el measured."""
        sidecar = f'(setq efrit-sidecar-command (list "{sys.executable}" "-m" "efrit_budget"))'
        script = str(ROOT / "tests/benchmarks/elisp/bench.el")
        reference = (sys.executable, str(ECHO_SERVER))
        measured: dict[str, float] = json.loads(
            self._run("--eval", sidecar, "-l", script, "-f", function, *reference)
        )
        return measured

    def against(self, what: str, function: str, bar: float) -> Row:
        """A row of ours beside the reference."""
        measured = self.measure(function)
        return _compared(what, measured["ours"], measured["reference"], bar)

    def _run(self, *arguments: str) -> str:
        program = os.environ.get("EMACS", "emacs")
        command = [program, "-Q", "--batch", "-L", str(self._folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout


def _start() -> Row:
    """Spawn to the reply to `initialize`, and the import alone, taking turns."""
    ours, reference = [], []
    _seconds_to_greet()
    for _ in range(STARTS):
        reference.append(_seconds_to_import())
        ours.append(_seconds_to_greet())
    return _compared(
        f"spawn to `initialize` reply, median of {STARTS}",
        statistics.median(ours) * 1000,
        statistics.median(reference) * 1000,
        1.3,
    )


def _seconds_to_greet() -> float:
    start = time.perf_counter()
    with Sidecar(command=SERVE) as sidecar:
        sidecar.request("initialize", client={"name": "bench"}, protocol_version=1)
        return time.perf_counter() - start


def _seconds_to_import() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import jsonrpcserver, pydantic"], check=True)
    return time.perf_counter() - start


def _status(emacs: Emacs) -> Row:
    measured = emacs.measure("efrit-bench-status-beside-a-slow-tool")
    return Row(
        what=f"session/status while a 5 s tool runs, median of {measured['count']:.0f}",
        ours=f"{measured['median']:.2f} ms (worst {measured['worst']:.1f})",
        bar="50 ms",
        holds=measured["median"] < 50,
    )


def _memory() -> Row:
    with Sidecar(command=SERVE) as sidecar:
        sidecar.request("initialize", client={"name": "bench"}, protocol_version=1)
        session = sidecar.request("session/open", root=str(ROOT))["session_id"]
        sidecar.request(
            "tools/call",
            session_id=session,
            name="file_info",
            arguments={"paths": ["pyproject.toml"]},
            tool_use_id="bench",
        )
        megabytes = _resident_kib(sidecar.process.pid) / 1024
    return Row("resident memory, idle", f"{megabytes:.1f} MB", bar="60 MB", holds=megabytes <= 60)


def _resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def _reading(emacs: Emacs) -> Row:
    """Measure the gain of a higher `read-process-output-max`, which `efrit-rpc.el` sets."""
    measured = emacs.measure("efrit-bench-reading")
    parts = [f"{limit}: {took:.1f} ms" for limit, took in measured.items()]
    return Row("1 MB reply by read-process-output-max", "", reference=", ".join(parts))


def _compared(what: str, ours: float, reference: float, bar: float) -> Row:
    ratio = ours / reference
    return Row(
        what=what,
        ours=f"{ours:.2f} ms",
        reference=f"{reference:.2f} ms",
        ratio=f"{ratio:.2f}x",
        bar=f"{bar}x",
        holds=ratio <= bar,
    )
