"""Files that usually hold secrets, known by their names alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cached_property

PATTERNS = (
    *(".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.gpg", "*.asc"),
    *("id_*", "!id_*.*", "id_*.bak", "id_*.old", "id_*.orig", "id_*.ppk", "*.ppk"),
    *(".authinfo*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd"),
    *(".pypirc", ".npmrc", ".s3cfg", ".boto", ".vault-token", "*.tfvars", "*.tfstate"),
    *(".aws/credentials", ".azure/*", ".kube/config", ".docker/config.json", "gcloud/*"),
    *("application_default_credentials.json", "service-account*.json", "client_secret*.json"),
    *(".ssh/*", "!.ssh/*.pub", "!.ssh/known_hosts*", "!.ssh/config", ".gnupg/*"),
)
"""As in a .gitignore: the last that matches decides; one with a slash matches a path's end."""


@dataclass(frozen=True)
class Secrets:
    """Which files are read only when the person agrees."""

    patterns: Sequence[str] = PATTERNS

    def holds(self, name: str) -> bool:
        """Whether a file of this name, or at the end of this path, usually holds secrets."""
        path = f"/{name.casefold()}"
        if self._suspect.match(path) is None:
            return False
        found = False
        for pattern in self.patterns:
            bare = pattern.removeprefix("!").casefold()
            if fnmatchcase(path, f"*/{bare}"):
                found = pattern == bare or not pattern.startswith("!")
        return found

    @cached_property
    def _suspect(self) -> re.Pattern[str]:
        """What matches every such file at once; of thousands of names hardly any does."""
        bare = [pattern.casefold() for pattern in self.patterns if not pattern.startswith("!")]
        return re.compile(rf"(?s:.*/)(?:{'|'.join(map(translate, bare)) or '(?!)'})")

    @property
    def globs(self) -> list[str]:
        """Globs that find every such file, and some others."""
        return [f"**/{pattern}" for pattern in self.patterns if not pattern.startswith("!")]
