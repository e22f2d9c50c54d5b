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
"""The folders beside a program's own folder that it may need if it is installed elsewhere."""
READ_BY_ALL = (
    *("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo"),
    *("/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu"),
)
PROBE_SECONDS = 10

Begun = TypeVar("Begun")


def find_program(name: str) -> str | None:
    """Return the path of a program in the absolute folders of PATH, or None."""
    folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute()]
    return shutil.which(name, path=os.pathsep.join(folders)) if folders else None


def begin_restricted(restrict: Callable[[], None], begin: Callable[[], Begun]) -> Begun:
    """Call `restrict`, then `begin`, in a thread of its own; return the result of `begin`.

    A program that `begin` starts is restricted too; other threads are not.
    """
    thread = ThreadPoolExecutor(1)
    try:
        thread.submit(restrict).result()
        return thread.submit(begin).result()
    finally:
        thread.shutdown(wait=False)


def begin_hidden(begin: Callable[[], Begun]) -> Begun:
    """Call `begin`; with Landlock, what it starts cannot look into processes started elsewhere."""
    if not landlock.version():
        return begin()
    return begin_restricted(landlock.hide_other_processes, begin)


@cache
def own_rules(program: str) -> tuple[Rule, ...] | None:
    """Return rules for the files that a program needs to run; None if it does not run with them."""
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
