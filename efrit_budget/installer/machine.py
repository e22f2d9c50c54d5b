"""The machine for which an installer is made: its Python, platform and C library."""

import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass

OLDEST_GLIBC = 5
"""The oldest version 2.N of glibc for which wheels are made."""
MUSL = ("musllinux_1_1", "musllinux_1_2")
MACOS = re.compile(r"macosx-(\d+)\.(\d+)-(\w+)")
LAST_MACOS_10 = 16


@dataclass(frozen=True)
class Machine:
    """A version of Python ("3.11"), its platform ("linux-x86_64") and C library ("glibc-2.36")."""

    python: str
    platform: str
    libc: str

    @classmethod
    def here(cls) -> "Machine":
        """Return the machine that this program runs on."""
        version = "{}.{}".format(*sys.version_info[:2])
        return cls(version, sysconfig.get_platform(), "-".join(platform.libc_ver()))

    @property
    def tags(self) -> list[str]:
        """The platforms of wheels that run on the machine, as pip names them, the best first."""
        return list(self._tags())

    def _tags(self) -> Iterator[str]:
        system, _, architecture = self.platform.partition("-")
        if system == "linux":
            glibc = re.fullmatch(r"glibc-2\.(\d+)", self.libc)
            newest = int(glibc[1]) if glibc else 0
            for version in range(newest, OLDEST_GLIBC - 1, -1):
                yield f"manylinux_2_{version}_{architecture}"
            if newest >= 17:
                yield f"manylinux2014_{architecture}"
            if not glibc:
                yield from (f"{tag}_{architecture}" for tag in MUSL)
        macos = MACOS.fullmatch(self.platform)
        if macos:
            for major in range(int(macos[1]), 10, -1):
                yield from (f"macosx_{major}_0_{kind}" for kind in (macos[3], "universal2"))
            for minor in range(LAST_MACOS_10, 8, -1):
                yield from (f"macosx_10_{minor}_{kind}" for kind in (macos[3], "universal2"))
