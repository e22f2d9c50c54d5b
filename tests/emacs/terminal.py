"""An Emacs in a terminal, driven by keys and read from the screen."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.emacs.batch import INTERPRETED, ROOT
from tests.processes import until
from tests.sidecar import forked

Size = tuple[int, int]
SIZE: Size = (110, 44)
"""Columns and lines."""
PAUSE = 0.1
"""Seconds between two looks at the screen: each starts a program."""


def settings(url: str) -> str:
    """The Lisp with which an Emacs talks to the model at a URL, and to forked sidecars."""
    command = " ".join(json.dumps(word) for word in forked())
    return f"""(setq efrit-claude-url "{url}/v1/messages"
  efrit-sidecar-command '({command})
  efrit-claude-headers '(("x-api-key" . "sk-test"))
  efrit-claude-features '(cache thinking effort binding diagnostics)
  inhibit-startup-screen t)"""


@dataclass(frozen=True)
class Terminal:
    """A terminal with a program in it."""

    name: str

    def press(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def screen(self) -> str:
        """What stands on the screen."""
        return self._tmux("capture-pane", "-p")

    def see(self, *texts: str) -> str:
        """Wait until all the texts stand on the screen, and give what stands there."""
        seen = [""]

        def shows_all() -> bool:
            seen[0] = self.screen()
            return all(text in seen[0] for text in texts)

        assert until(shows_all, pause=PAUSE), f"not on the screen: {texts}\n{seen[0]}"
        return seen[0]

    def gone(self, text: str) -> None:
        """Wait until a text stands on the screen no more."""
        assert until(lambda: text not in self.screen(), pause=PAUSE), self.screen()

    def kill(self) -> None:
        """Kill the program as a closed window does, without a question."""
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=True)

    def rest_on(self, text: str) -> None:
        """Wait until the cursor stands on a line with the text."""
        assert until(lambda: text in self.line(), pause=PAUSE), self.screen()

    def line(self) -> str:
        """The line that the cursor is on."""
        row = int(self._tmux("display-message", "-p", "#{cursor_y}"))
        return (self.screen().split("\n") + [""] * (row + 1))[row]

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self.name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def emacs(folder: Path, url: str, size: Size = SIZE) -> Iterator[Terminal]:
    """An Emacs in a terminal on a folder, whose model is at a URL."""
    terminal = Terminal(f"efrit-test-{uuid.uuid4().hex[:12]}")
    command = [os.environ.get("EMACS", "emacs"), "-nw", "-Q", *INTERPRETED]
    command += ["-L", str(ROOT / "elisp"), "-l", "efrit", "--eval", settings(url)]
    start = ["tmux", "-L", terminal.name, "-f", "/dev/null", "-u", "new-session", "-d"]
    start += ["-x", str(size[0]), "-y", str(size[1])]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "TMUX": ""}
    subprocess.run([*start, *command], check=True, cwd=folder, env=environment)
    try:
        terminal.see("*scratch*")
        yield terminal
    finally:
        command = ["tmux", "-L", terminal.name, "kill-server"]
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
