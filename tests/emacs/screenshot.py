"""Makes the pictures of `docs/` anew: `python -m tests.emacs.screenshot` (or `make screenshot`).

A graphical Emacs on a virtual display runs the demo, and pictures the question that it asks, the
session in a light and in a dark theme, and the budget view. It needs xvfb-run, and a font that has
the signs (Debian: xvfb, xauth, fonts-dejavu, fonts-symbola).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.emacs.batch import ROOT

PICTURES = ("session-light", "session-dark", "question", "budget")
COLOURS = 64
"""The number of colours: enough for text, and the files stay small."""


def take(folder: Path) -> None:
    """Run the demo in Emacs; it writes the pictures into the folder."""
    home = folder / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "HOME": str(home),
        "EFRIT_SCREENSHOTS": str(folder),
        "GDK_BACKEND": "x11",
    }
    lisp = ["-L", str(ROOT / "elisp"), "-l", str(ROOT / "tests/emacs/screenshot.el")]
    display = ["xvfb-run", "-a", "-s", "-screen 0 1400x1100x24"]
    emacs = [os.environ.get("EMACS", "emacs"), "-Q", *lisp]
    subprocess.run([*display, *emacs], cwd=home, env=environment, check=True, timeout=180)


def main() -> int:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        take(folder)
        for picture in PICTURES:
            shown, kept = folder / f"{picture}.png", ROOT / "docs" / f"{picture}.png"
            if not shown.exists():
                print(f"the demo did not come to its {picture}", file=sys.stderr)
                return 1
            with Image.open(shown) as image:
                small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            small.save(kept, optimize=True)
            print(f"{kept.relative_to(ROOT)}: {kept.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
