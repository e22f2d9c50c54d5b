"""Makes `docs/session.png` anew: `python -m tests.emacs.screenshot` (or `make screenshot`).

A graphical Emacs on a virtual display works on a copy of this checkout with a scripted model. It
needs xvfb-run, and a font that has the signs (Debian: xvfb, xauth, fonts-dejavu, fonts-symbola).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.demo.running import endpoint
from tests.emacs.batch import ROOT

PICTURE = ROOT / "docs" / "session.png"
COLOURS = 64
"""The number of colours: enough for text, and the file stays small."""
TASK = "Do all of our errors have a test? Begin with the errors of the sidecar."
SCENARIO = Path(__file__).with_suffix(".toml")


def picture(folder: Path) -> Path:
    """Run a session in Emacs and return the picture of its frame."""
    shown = folder / "session.png"
    home = folder / "home"
    project = home / "src" / "efrit-budget"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), project], check=True)
    with endpoint(SCENARIO.read_text(encoding="utf-8"), folder) as model:
        environment = {
            **os.environ,
            "HOME": str(home),
            "EFRIT_BUDGET_HOME": str(home / ".efrit"),
            "EFRIT_SCREENSHOT": str(shown),
            "EFRIT_SCREENSHOT_URL": model.server.url,
            "EFRIT_SCREENSHOT_TASK": TASK,
            "GDK_BACKEND": "x11",
        }
        lisp = ["-L", str(ROOT / "elisp"), "-l", str(ROOT / "tests/emacs/screenshot.el")]
        display = ["xvfb-run", "-a", "-s", "-screen 0 1400x1100x24"]
        emacs = [os.environ.get("EMACS", "emacs"), "-Q", *lisp]
        subprocess.run([*display, *emacs], cwd=project, env=environment, check=True, timeout=120)
    return shown


def main() -> int:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        shown = picture(Path(folder))
        if not shown.exists():
            print("the session did not come to its question", file=sys.stderr)
            return 1
        with Image.open(shown) as image:
            small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        small.save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
