"""Find programs and the files they need to run."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from efrit_budget.project.processes import landlock
from efrit_budget.project.processes.landlock import READ, RUN, USE, Rule

LIBRARIES = (
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"),
    *("/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store"),
)
BESIDE = ("lib", "lib64", "libexec")
"""Folders of a program that was installed somewhere else, beside the folder that it is in."""
READ_BY_ALL = (
    *("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo"),
    *("/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu"),
)
PROBE_SECONDS = 10

Begun = TypeVar("Begun")


def find_program(name: str) -> str | None:
    """Find a program in the folders of PATH; one that is named relatively (".") is not one."""
    folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute()]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


def begin_restricted(restrict: Callable[[], None], begin: Callable[[], Begun]) -> Begun:
    """Begin something in a thread of its own that is restricted before.

    A program that is started there is restricted too; the rest of the process is as before.
    """
    thread = ThreadPoolExecutor(1)
    try:
        thread.submit(restrict).result()
        return thread.submit(begin).result()
    finally:
        thread.shutdown(wait=False)


def begin_hidden(begin: Callable[[], Begun]) -> Begun:
    """Begin something that cannot look into processes it did not start, where that can be had."""
    if not landlock.version():
        return begin()
    return begin_restricted(landlock.hide_other_processes, begin)


@cache
def own_rules(program: str) -> tuple[Rule, ...] | None:
    """Return what a program needs for itself; None where it cannot run with that alone."""
    if not landlock.version():
        return None
    file = Path(program).resolve()
    named = [*LIBRARIES, *(str(file.parent.parent / name) for name in BESIDE)]
    folders = {str(Path(folder).resolve()) for folder in named if Path(folder).is_dir()}
    rules: tuple[Rule, ...] = (
        *((path, RUN) for path in (program, *sorted(folders))),
        *((path, READ) for path in READ_BY_ALL if Path(path).exists()),
        (os.devnull, USE),
    )
    return rules if _runs(program, rules) else None


def _runs(program: str, rules: Sequence[Rule]) -> bool:
    begin = partial(
        subprocess.run,
        [program, "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=PROBE_SECONDS,
        cwd="/",
    )
    try:
        begin_restricted(partial(landlock.restrict_to, rules), begin)
    except (OSError, subprocess.SubprocessError):
        return False
    return True
