"""A real git repository for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ann Lee",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann Lee",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_MERGE_AUTOEDIT": "no",
}


class Repository:
    """A folder with a repository in it, on the branch main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(
        self,
        *arguments: str,
        fails: bool = False,
        given: bytes | None = None,
        moment: str | None = None,
    ) -> str:
        """Run a git command and return its output."""
        times = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment} if moment else {}
        found = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **ENVIRONMENT, **times},
            input=given,
            capture_output=True,
            check=False,
        )
        assert fails or found.returncode == 0, found.stderr.decode()
        return os.fsdecode(found.stdout).strip()

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file and return its path."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self, message: str, *, day: str = "2024-05-01", **files: str | bytes) -> str:
        """Write files, add all there is, and commit; the hash."""
        for name, content in files.items():
            self.write(name, content)
        self.git("add", "--all")
        command = ["commit", "-q", "--allow-empty", "-m", message]
        self.git(*command, moment=f"{day}T12:00:00+0200")
        return self.git("rev-parse", "HEAD")
