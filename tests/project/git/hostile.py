"""A repository that would make ordinary git commands run programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.repository import Repository

HOOKS = ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman")
ATTRIBUTES = "*.txt filter=evil diff=evil merge=evil\n*.odd filter=a=b.c diff=evil\n"
SIGNATURE = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n =x\n -----END PGP SIGNATURE-----\n"


@dataclass(frozen=True)
class Trap:
    """A setting that names a program, and an ordinary command that runs it."""

    settings: tuple[tuple[str, str], ...]
    """The names and values of settings; `PROGRAM` in a value stands for the program."""
    sprung_by: tuple[str, ...] | None
    """The command that springs the trap; None if only a terminal or the network would."""


def _one(name: str, *sprung_by: str, also: tuple[tuple[str, str], ...] = ()) -> Trap:
    return Trap(((name, "PROGRAM"), *also), sprung_by or None)


TRAPS = {
    "core.fsmonitor": _one("core.fsmonitor", "status"),
    "core.hooksPath": Trap((("core.hooksPath", "HOOKS"),), ("status",)),
    "filter.clean": _one("filter.evil.clean", "diff"),
    "filter.process": _one("filter.evil.process", "diff", also=(("filter.evil.required", "true"),)),
    "filter of an odd name": _one("filter.a=b.c.clean", "diff"),
    "diff.external": _one("diff.external", "diff"),
    "diff.command": _one("diff.evil.command", "diff"),
    "diff.textconv": _one("diff.evil.textconv", "diff"),
    "diff.textconv in show": _one("diff.evil.textconv", "show", "HEAD~1"),
    "diff.textconv in blame": _one("diff.evil.textconv", "blame", "a.txt"),
    "gpg.program": _one("gpg.program", "log", also=(("log.showSignature", "true"),)),
    "gpg.program in show": _one("gpg.program", "show", also=(("log.showSignature", "true"),)),
    "merge.driver": _one(
        "merge.evil.driver", "log", "-m", "-p", also=(("log.diffMerges", "remerge"),)
    ),
    "submodule's core.fsmonitor": Trap((("SUBMODULE core.fsmonitor", "PROGRAM"),), ("status",)),
    "submodule's filter": Trap((("SUBMODULE filter.evil.clean", "PROGRAM"),), ("diff",)),
    "an included file": Trap((("INCLUDED filter.evil.clean", "PROGRAM"),), ("diff",)),
    "core.pager": _one("core.pager"),
    "pager.log": _one("pager.log"),
    "core.editor": _one("core.editor"),
    "core.askPass": _one("core.askPass"),
    "core.sshCommand": _one("core.sshCommand"),
    "core.alternateRefsCommand": _one("core.alternateRefsCommand"),
    "credential.helper": _one("credential.helper"),
    "interactive.diffFilter": _one("interactive.diffFilter"),
    "alias": Trap((("alias.status", "!PROGRAM"), ("alias.diff", "!PROGRAM")), None),
    "filter.smudge": _one("filter.evil.smudge"),
}


class HostileRepository:
    """A repository with changes, a merge, a signed commit, a submodule, and a trap's program."""

    def __init__(self, repository: Repository, outside: Path) -> None:
        self.repository = repository
        self.mark = outside / "mark"
        self.included = repository.folder / "included.config"
        self.program = outside / "program"
        self.program.write_text(f"#!/bin/sh\ntouch '{self.mark}'\ncat\n", encoding="utf-8")
        self.program.chmod(0o700)
        self.hooks = outside / "hooks"
        self.hooks.mkdir()
        for hook in HOOKS:
            (self.hooks / hook).symlink_to(self.program)
        self.submodule = Repository(repository.folder / "inner")
        self._fill()
        self._clean_configuration = self._configuration().read_bytes()
        self._clean_inner = self._configuration(self.submodule).read_bytes()

    def _fill(self) -> None:
        self.submodule.commit("inner", **{"in.txt": "in\n", ".gitattributes": ATTRIBUTES})
        outer = self.repository
        files = dict.fromkeys(("a.txt", "b.odd"), "one\ntwo\n")
        outer.commit("first", **files, **{".gitattributes": ATTRIBUTES})
        outer.git("checkout", "-q", "-b", "side")
        outer.commit("side", **{"a.txt": "one\nside\n"})
        outer.git("checkout", "-q", "main")
        outer.commit("second", **{"a.txt": "one\nmain\n"})
        outer.git("merge", "-q", "-s", "ours", "--no-edit", "side")
        plain = outer.git("cat-file", "commit", "HEAD").encode() + b"\n"
        head, _, message = plain.partition(b"\n\n")
        signed = head + b"\n" + SIGNATURE + b"\n" + message
        digest = outer.git("hash-object", "-t", "commit", "-w", "--stdin", given=signed)
        outer.git("update-ref", "HEAD", digest)
        self.touch()

    def touch(self) -> None:
        """Change files such that git has to look into them, and to write its index anew."""
        (self.repository.folder / ".gitattributes").touch()
        for name in ("a.txt", "b.odd"):
            self.repository.write(name, "one\nthree\n")
        self.submodule.write("in.txt", "ni\n")

    def _configuration(self, repository: Repository | None = None) -> Path:
        return (repository or self.repository).folder / ".git" / "config"

    def set(self, trap: Trap) -> None:
        """Apply the settings of one trap."""
        for name, value in trap.settings:
            meant = value.replace("PROGRAM", str(self.program)).replace("HOOKS", str(self.hooks))
            place, _, key = name.rpartition(" ")
            if place == "SUBMODULE":
                self.submodule.git("config", key, meant)
            elif place == "INCLUDED":
                self.repository.git("config", "--file", str(self.included), key, meant)
                self.repository.git("config", "include.path", str(self.included))
            else:
                self.repository.git("config", key, meant)

    def reset(self) -> None:
        """Undo every setting, and delete the mark of the trap's program."""
        self._configuration().write_bytes(self._clean_configuration)
        self._configuration(self.submodule).write_bytes(self._clean_inner)
        self.included.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)
        self.touch()
