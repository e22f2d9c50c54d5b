"""Stamps of files: texts that differ after a change."""

import os


def stamp_of(size: int, modified_ns: int) -> str:
    """Return the stamp of a file of this size that was last modified at this time."""
    return f"{size}-{modified_ns}"


def stamp_from(facts: os.stat_result) -> str:
    """Return the stamp of a file from the status that the file system reports."""
    return stamp_of(facts.st_size, facts.st_mtime_ns)
