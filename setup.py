"""Put the Lisp files of the Emacs package into the wheel; all else is in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLisp(build_py):
    """Adds the Lisp files to the package; a package installed in place has the checkout's."""

    def run(self) -> None:
        """Build the package, and have the Lisp files ready to be loaded."""
        super().run()
        copied = ["copy", str(Path(self.build_lib, "efrit_budget", "elisp"))]
        made = ["autoloads", "elisp"] if self.editable_mode else copied
        subprocess.run([sys.executable, ".ci/lisp.py", *made], check=True)  # noqa: S603  our own


setup(cmdclass={"build_py": BuildWithLisp})
