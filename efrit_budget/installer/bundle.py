"""Make an installer: a zip file that Python runs, with all that is to be installed."""

import importlib.util
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from efrit_budget import __version__
from efrit_budget.installer import unpack
from efrit_budget.installer.distributions import OWN, Distribution, needed
from efrit_budget.installer.machine import Machine

DOWNLOAD = ("download", "--quiet", "--no-deps", "--only-binary", ":all:")
DATA = ".data/"
"""Stands in the names of those folders of a wheel that go elsewhere."""


def write_installer(file: Path, machine: Machine) -> list[str]:
    """Write an installer for a machine; return the requirements that are not in it."""
    missing = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for distribution in needed():
            if distribution.is_pure or machine == Machine.here():
                _add(archive, distribution)
            elif not _add_downloaded(archive, distribution, machine):
                missing.append(f"{distribution.name}=={distribution.version}")
        about = {"version": __version__, "python": machine.python, "missing": missing}
        archive.writestr(unpack.ABOUT, json.dumps(about))
        archive.write(str(unpack.__file__), "__main__.py")
    return missing


def _add(archive: zipfile.ZipFile, distribution: Distribution) -> None:
    for file in distribution.files():
        folder = unpack.PROGRAMS if file.is_program else unpack.PACKAGES
        archive.write(file.source, f"{folder}/{file.path}")
    if distribution.name == OWN:
        place = f"{unpack.PACKAGES}/efrit_budget-{distribution.version}.dist-info/METADATA"
        archive.writestr(place, distribution.metadata)


def _add_downloaded(archive: zipfile.ZipFile, wanted: Distribution, machine: Machine) -> bool:
    """Add the files of a wheel for another machine; return False if none can be had."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(wanted, machine, Path(folder))
        if wheel is None:
            return False
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                place = _place_of(name)
                if place is not None:
                    archive.writestr(place, opened.read(name))
    return True


def _download(wanted: Distribution, machine: Machine, folder: Path) -> Path | None:
    """Have this Python's pip download a wheel; return its file, or None."""
    if importlib.util.find_spec("pip") is None:
        return None
    pip = [sys.executable, "-m", "pip"]
    platforms = [word for tag in machine.tags for word in ("--platform", tag)]
    python = ["--python-version", machine.python, "--implementation", "cp"]
    target = ["--dest", str(folder), f"{wanted.name}=={wanted.version}"]
    subprocess.run([*pip, *DOWNLOAD, *python, *platforms, *target], check=False)  # noqa: S603
    return next(folder.glob("*.whl"), None)


def _place_of(name: str) -> str | None:
    """Return where in the installer a file of a wheel belongs; None for what is left out."""
    folder, data, rest = name.partition(DATA)
    kind, _, path = rest.partition("/")
    if name.endswith("/") or ".." in name.split("/"):
        return None
    if not data or "/" in folder:
        return f"{unpack.PACKAGES}/{name}"
    if kind in ("purelib", "platlib"):
        return f"{unpack.PACKAGES}/{path}"
    return f"{unpack.PROGRAMS}/{path}" if kind == "scripts" else None
