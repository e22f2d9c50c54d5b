"""The outcome of a check, and the programs in `programs.txt`, which .ci/setup reads too."""

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

LIST: Final = Path(__file__).with_name("programs.txt")


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check: what was found, and the fix if there is a problem."""

    name: str
    found: str
    fix: str | None = None
    required: bool = True

    @property
    def ok(self) -> bool:
        """Return whether nothing needs fixing."""
        return self.fix is None

    @property
    def breaks(self) -> bool:
        """Return whether the sidecar cannot work because of this problem."""
        return self.required and not self.ok

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and `ok` as a JSON object."""
        return {"ok": self.ok, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Program:
    """A program or library in `programs.txt`."""

    needed_by: tuple[str, ...]
    name: str
    names: tuple[str, ...]
    """The program's possible names on PATH; empty for a library."""
    prints: tuple[str, ...]
    """Texts that the output of --version must contain."""
    oldest: str
    packages: tuple[str, ...]
    purpose: str


@cache
def listed_programs() -> dict[str, Program]:
    """Return the programs and libraries in `programs.txt`, by name."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    programs = [_program(line) for line in lines if line.strip() and not line.startswith("#")]
    return {program.name: program for program in programs}


def _program(line: str) -> Program:
    needed_by, name, looked_for, oldest, packages, purpose = map(str.strip, line.split("|"))
    words = [] if looked_for.startswith(("python:", "elisp:")) else looked_for.split()
    return Program(
        needed_by=tuple(needed_by.split()),
        name=name,
        names=tuple(word for word in words if not word.startswith("+")),
        prints=tuple(word for word in words if word.startswith("+")),
        oldest=oldest,
        packages=tuple(packages.split()),
        purpose=purpose,
    )
