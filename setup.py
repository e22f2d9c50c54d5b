"""Put the Emacs package and its manual into the wheel; all else is in pyproject.toml."""

import shutil
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
        if not self.editable_mode:
            self._make_manual()
        made = ["autoloads", "elisp"] if self.editable_mode else copied
        self._run(*made)

    def _make_manual(self) -> None:
        if shutil.which("makeinfo") and shutil.which("install-info"):
            self._run("manual", "elisp")
        else:
            print("the wheel gets no new manual: makeinfo is missing", file=sys.stderr)

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run([sys.executable, ".ci/lisp.py", *arguments], check=True)  # noqa: S603  our own


setup(cmdclass={"build_py": BuildWithLisp})
