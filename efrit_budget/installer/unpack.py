"""Install from the zip file that this is the main program of; any Python 3 can read this file."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ABOUT, PACKAGES, PROGRAMS = "about.json", "packages", "programs"
"""The names of a file and of two folders in the zip file."""
LAUNCHER = """#!/bin/sh
exec {python} -I -m efrit_budget "$@"
"""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Install into the person's data folder; return the exit code of the doctor there."""
    with zipfile.ZipFile(sys.argv[0]) as archive:
        about = json.loads(archive.read(ABOUT).decode())
        here = "{}.{}".format(*sys.version_info[:2])
        if here != about["python"]:
            say(f"This installer is for Python {about['python']}, and this is Python {here}.")
            return 2
        folder = place()
        say(f"Installing efrit-budget {about['version']} in {folder}")
        packages = make_environment(folder)
        unpack(archive, folder, packages)
    if about["missing"] and not add_missing(folder, about["missing"]):
        return 3
    launcher = folder / "bin" / "efrit-budget"
    launcher.write_text(LAUNCHER.format(python=shlex.quote(str(folder / "bin" / "python"))))
    launcher.chmod(0o755)
    return subprocess.call([str(launcher), "doctor"])  # noqa: S603  it was just written


def place() -> Path:
    """Return the folder of the virtual environment."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path("~/.local/share").expanduser())
    return Path(data) / "efrit-budget" / "venv"


def make_environment(folder: Path) -> Path:
    """Make a virtual environment anew, without pip; return the folder of its packages."""
    shutil.rmtree(str(folder), ignore_errors=True)
    venv.create(str(folder), symlinks=True)
    return next(folder.glob("lib/python*/site-packages"))


def unpack(archive: zipfile.ZipFile, folder: Path, packages: Path) -> None:
    """Write the files of the zip file to their places."""
    targets = {PACKAGES: packages, PROGRAMS: folder / "bin"}
    for name in archive.namelist():
        kind, _, path = name.partition("/")
        if kind in targets:
            file = targets[kind] / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(name))
            if kind == PROGRAMS:
                file.chmod(0o755)


def add_missing(folder: Path, requirements: "list[str]") -> bool:
    """Have pip install what is not in the zip file; return whether it could."""
    python = str(folder / "bin" / "python")
    say("Downloading " + ", ".join(requirements))
    for command in (["-m", "ensurepip"], ["-m", "pip", "install", "--no-deps", *requirements]):
        if subprocess.call([python, *command]) != 0:  # noqa: S603  of its own virtual environment
            say("These could not be installed: " + ", ".join(requirements) + ".")
            say("This machine needs a network and pip for them (on Debian: python3-venv), or the")
            say("machine on which the installer was made needs a network and pip.")
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
