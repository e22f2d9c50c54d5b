"""Restrict with Linux's Landlock what a thread and its programs may open.

A rule is about a file, or about a folder with all that is below it. The kernel looks at what is
opened in the end: no link, no `..` and no swap of a file for a link leads around a rule.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, reduce
from operator import or_

OLDEST = 2
"""The first version under which a restricted program may still move files between folders."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
REMOVE_FILE, MAKE_FILE, REFER, TRUNCATE = 1 << 5, 1 << 8, 1 << 13, 1 << 14
RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: 1 << 15}
"""Each version's own rights over files; those of older versions stay."""
CONNECT_BY_VERSION = {4: 0b11}
"""To bind to TCP ports, and to connect to them."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE
"""The rights that a rule about a file may hold."""
READ, RUN, USE = READ_FILE | READ_DIR, READ_FILE | READ_DIR | EXECUTE, READ_FILE | WRITE_FILE
CHANGE = READ | WRITE_FILE | TRUNCATE | REMOVE_FILE | MAKE_FILE

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ONLY_VERSION, BELOW_PATH = 1, 1
SET_NO_NEW_PRIVILEGES, DROP_CAPABILITY = 38, 24
LOOKING = (21, 38)
"""The capabilities SYS_ADMIN and PERFMON."""

Rule = tuple[str | os.PathLike[str], int]
"""A path, and what is allowed below it."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _BelowPath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def version() -> int:
    """Return which Landlock the kernel has; 0 where it has none that serves here."""
    if sys.platform != "linux":
        return 0
    try:
        found = _call("syscall", CREATE_RULESET, None, 0, ONLY_VERSION)
    except OSError:
        return 0
    return found if found >= OLDEST else 0


def hide_other_processes() -> None:
    """Keep this thread from the memory and the environment of processes it did not start.

    All files stay open to it; only to mount something is refused. A superuser's programs do
    without the capabilities by which Linux lets them look all the same.
    """
    restrict_to([("/", REFER)], REFER, 0)
    for capability in LOOKING:
        with suppress(PermissionError):  # who is no superuser has none
            _call("prctl", DROP_CAPABILITY, capability, 0, 0, 0)


@cache
def _known_rights() -> tuple[int, int]:
    """Return all rights over files, and over the network, that this kernel knows."""
    files, network = (
        reduce(or_, (own for since, own in rights.items() if since <= version()), 0)
        for rights in (RIGHTS_BY_VERSION, CONNECT_BY_VERSION)
    )
    return files, network


def restrict_to(rules: Iterable[Rule], files: int | None = None, network: int = 0) -> None:
    """Let this thread open what the rules allow, and nothing else; no network either.

    It holds for the programs that the thread starts, for all they start, and for ever. With
    `files`, only these rights over files are taken away, and `network` of those over the network.
    What is not there, or may not be reached anyway, needs no rule.
    """
    if files is None:
        files, network = _known_rights()
    known = _Ruleset(files, network)
    ruleset = _call("syscall", CREATE_RULESET, ctypes.byref(known), ctypes.sizeof(known), 0)
    try:
        for path, rights in rules:
            try:
                found = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                    raise
                continue
            try:
                of_kind = files if stat.S_ISDIR(os.fstat(found).st_mode) else files & OF_FILES
                rule = _BelowPath(rights & of_kind, found)
                _call("syscall", ADD_RULE, ruleset, BELOW_PATH, ctypes.byref(rule), 0)
            finally:
                os.close(found)
        try:
            _call("syscall", RESTRICT_SELF, ruleset, 0)
        except PermissionError:
            _call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            _call("syscall", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: object) -> int:
    """Call the C library; `syscall` makes system calls that it has no function for."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = getattr(_library(), function)(*words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
