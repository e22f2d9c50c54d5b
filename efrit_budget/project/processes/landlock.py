"""Restrict with Linux's Landlock what a thread and its programs may open.

A rule is about a file, or about a folder with all that is below it. The kernel checks the file
that is opened in the end: no link, no `..` and no swap of a file for a link evades a rule.
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
"""The first version of Landlock that lets a restricted program move files between folders."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
REMOVE_FILE, MAKE_FILE, REFER, TRUNCATE = 1 << 5, 1 << 8, 1 << 13, 1 << 14
RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: 1 << 15}
"""The rights over files that each version of Landlock adds to those of older versions."""
CONNECT_BY_VERSION = {4: 0b11}
"""The rights that a version adds over the network: to bind to TCP ports, and to connect."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE
"""The rights that a rule about a file may hold."""
READ, RUN, USE = READ_FILE | READ_DIR, READ_FILE | READ_DIR | EXECUTE, READ_FILE | WRITE_FILE
CHANGE = READ | WRITE_FILE | TRUNCATE | REMOVE_FILE | MAKE_FILE

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ONLY_VERSION, BELOW_PATH = 1, 1
SET_NO_NEW_PRIVILEGES, DROP_CAPABILITY = 38, 24
LOOKING = (21, 38)
"""The capabilities SYS_ADMIN and PERFMON, which let a superuser look into processes."""

Rule = tuple[str | os.PathLike[str], int]
"""A path, and the rights that are allowed for it and all below it."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _BelowPath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def version() -> int:
    """Return the version of the kernel's Landlock; 0 if it has none, or one before OLDEST."""
    if sys.platform != "linux":
        return 0
    try:
        found = _call("syscall", CREATE_RULESET, None, 0, ONLY_VERSION)
    except OSError:
        return 0
    return found if found >= OLDEST else 0


def hide_other_processes() -> None:
    """Keep this thread from the memory and the environment of processes it did not start.

    The thread may still open all files; it only cannot mount any more. A superuser's thread also
    drops the capabilities by which Linux would let it look into processes nevertheless.
    """
    restrict_to([("/", REFER)], REFER, 0)
    for capability in LOOKING:
        with suppress(PermissionError):  # only a superuser has them
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
    """Let this thread open only what the rules allow; forbid TCP if the kernel can.

    This also restricts, for ever, all programs that the thread starts. If `files` is given, only
    these rights over files and the rights `network` over the network are taken away. A path that
    cannot be opened is skipped.
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
