"""Open recordings of any of the programs that are known."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from efrit_budget.errors import JsonObject
from efrit_budget.replay import claude_code, exported, pi
from efrit_budget.replay.recording import Recording, RecordingError

READERS = (pi, exported, claude_code)
LOOKED_AT = 20
"""The lines by which the program that wrote a file is told."""


def open_recording(path: Path) -> Recording:
    """Return the recording in a file, which may be compressed by gzip; raise if it is none."""
    events = list(_events(path))
    for reader in READERS:
        if any(map(reader.fits, events[:LOOKED_AT])):
            recording: Recording = reader.read(path.name, events)
            return recording
    raise RecordingError(
        f"{path.name} is no recording that replay reads. It reads the JSON lines of Claude Code "
        "and pi, and what efrit-budget sessions export writes."
    )


def _events(path: Path) -> Iterator[JsonObject]:
    try:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}") from error
    except EOFError as error:
        raise RecordingError(f"{path} is cut off: copy it once more") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            raise RecordingError(f"{path.name}, line {number}, is not JSON: {error}") from error
        if isinstance(event, dict):
            yield event
