"""Records the demo in a terminal anew: `python -m tests.emacs.recording` (or `make screenshot`).

An Emacs in tmux runs the demo and gets the keys that a person would press; termtosvg draws what it
wrote as an animation.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tests.emacs.batch import ROOT
from tests.emacs.terminal import Size, Terminal

SIZE: Size = (100, 30)
RECORDING = ROOT / "docs" / "demo.svg"
SETTINGS = """(progn (load-theme 'modus-vivendi t) (menu-bar-mode -1)
  (setq inhibit-startup-screen t efrit-claude-key-hosts nil))"""
DRAWING = ["--template", "gjm8", "--loop-delay", "4000"]
FRAMES = ["--min-frame-duration", "250", "--max-frame-duration", "3000"]
"""The times in milliseconds between two frames: a file stays small, and no pause is long."""


class RecordedTerminal(Terminal):
    """A terminal that keeps what its program writes, with the times."""

    def __init__(self, name: str) -> None:
        self._outputs: list[tuple[float, str]] = []
        super().__init__(name)

    def note_output(self, output: str) -> None:
        """Keep an output, in which tmux writes some characters as numbers."""
        text = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), output)
        self._outputs.append((time.monotonic(), text))

    def begin(self) -> None:
        """Forget what was written so far, and have the screen drawn anew."""
        self._outputs.clear()
        self.press("C-l")

    def cast(self) -> str:
        """Return what was written since the beginning, in the format of asciinema."""
        head = {"version": 2, "width": SIZE[0], "height": SIZE[1]}
        start = self._outputs[0][0]
        events = [[round(at - start, 3), "o", text] for at, text in self._outputs]
        return "".join(json.dumps(line) + "\n" for line in [head, *events])


def record(folder: Path) -> str:
    """Play the demo in an Emacs whose home is the folder; return the recording."""
    name = f"efrit-recording-{uuid.uuid4().hex[:12]}"
    command = [os.environ.get("EMACS", "emacs"), "-nw", "-Q", "-L", str(ROOT / "elisp")]
    command += ["-l", "efrit", "--eval", SETTINGS]
    start = ["tmux", "-L", name, "-f", "/dev/null", "-u", "new-session", "-d"]
    start += ["-x", str(SIZE[0]), "-y", str(SIZE[1]), "env", "TERM=xterm-256color"]
    environment = {**os.environ, "HOME": str(folder), "LC_ALL": "C.UTF-8", "TMUX": ""}
    subprocess.run([*start, *command], check=True, cwd=folder, env=environment)
    terminal = RecordedTerminal(name)
    try:
        play(terminal)
        return terminal.cast()
    finally:
        terminal.kill()


def play(terminal: RecordedTerminal) -> None:
    """Press the keys of the demo, with time to read."""
    terminal.see("*scratch*")
    terminal.begin()
    terminal.press("M-x")
    for letter in "efrit-demo":
        time.sleep(0.1)
        terminal.type(letter)
    terminal.press("Enter")
    terminal.see("The fern")
    terminal.press("C-x", "1")
    terminal.see("[y] once")
    time.sleep(3)
    terminal.press("C-c", "C-y")
    terminal.see("● ready")
    time.sleep(3)
    terminal.press("C-c", "C-b")
    terminal.see("By file")
    time.sleep(3)
    terminal.press("q")
    terminal.see("● ready")


def main() -> int:
    """Write the recording."""
    with tempfile.TemporaryDirectory() as name:
        cast = Path(name) / "demo.cast"
        cast.write_text(record(Path(name)), encoding="utf-8")
        termtosvg = [str(Path(sys.executable).parent / "termtosvg"), "render"]
        command = [*termtosvg, str(cast), str(RECORDING), *DRAWING, *FRAMES]
        subprocess.run(command, check=True)
    print(f"{RECORDING.relative_to(ROOT)}: {RECORDING.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
