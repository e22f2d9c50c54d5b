"""An Emacs in a terminal that measures itself, with the package compiled as when installed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 600


@dataclass(frozen=True)
class Play:
    """A script to load, its function to call in a folder, and the file it writes."""

    script: Path
    function: str
    folder: Path
    output: Path


def play(played: Play, settings: str, **environment: str) -> None:
    """Run an Emacs in a terminal to its end; the Lisp `settings` are evaluated first."""
    name = f"efrit-bench-{uuid.uuid4().hex[:8]}"
    lisp = str(_compiled(played.output.parent))
    command = [os.environ.get("EMACS", "emacs"), "-nw", "-Q", "-L", lisp]
    sidecar = f'(setq efrit-sidecar-command (list "{sys.executable}" "-m" "efrit_budget"))'
    command += ["--eval", settings, "--eval", sidecar]
    command += ["-l", str(played.script), "-f", played.function]
    start = ["tmux", "-L", name, "-f", "/dev/null", "-u", "new-session", "-d", "-x", "120"]
    variables = {
        **os.environ,
        "EFRIT_BENCH_OUTPUT": str(played.output),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "TMUX": "",
        **environment,
    }
    subprocess.run([*start, "-y", "40", *command], check=True, cwd=played.folder, env=variables)
    limit = time.monotonic() + TIME_LIMIT
    while _runs(name) and time.monotonic() < limit:
        time.sleep(0.2)
    subprocess.run(["tmux", "-L", name, "kill-server"], check=False, capture_output=True)


def _runs(name: str) -> bool:
    asked = subprocess.run(["tmux", "-L", name, "has-session"], check=False, capture_output=True)
    return asked.returncode == 0


def _compiled(folder: Path) -> Path:
    """Byte-compile the package as an installation does, and return its folder."""
    made = folder / "elisp"
    if not made.exists():
        subprocess.run(["cp", "-r", str(ROOT / "elisp"), str(made)], check=True)
        files = [str(file) for file in sorted(made.glob("*.el"))]
        program = os.environ.get("EMACS", "emacs")
        compile_all = [program, "-Q", "--batch", "-L", str(made), "-f", "batch-byte-compile"]
        subprocess.run([*compile_all, *files], check=True, capture_output=True)
    return made
