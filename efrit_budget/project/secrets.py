"""Files that usually hold secrets, known by their names alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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

SIGNS = re.compile(r"\[.*?\]|[*?\[\]]")


@dataclass(frozen=True)
class Secrets:
    """Which files are read only when the person agrees."""

    patterns: Sequence[str] = PATTERNS

    def holds(self, name: str) -> bool:
        """Whether a file of this name, or at the end of this path, usually holds secrets.

        A pattern without a slash is about the file's own name, not those of its folders.
        """
        path = f"/{name.casefold()}"
        base = path.rpartition("/")[2]
        if not (self._names.match(base) or self._paths.search(path)):
            return False
        found = False
        for pattern in self.patterns:
            bare = pattern.removeprefix("!").casefold()
            fits = fnmatchcase(path, f"*/{bare}") if "/" in bare else fnmatchcase(base, bare)
            if fits:
                found = not pattern.startswith("!")
        return found

    def may_be_in(self, names: str) -> bool:
        """Whether any of these names, however joined, could hold secrets: a look at all at once."""
        folded = names.casefold()
        return any(part in folded for part in self._parts)

    @cached_property
    def _parts(self) -> list[str]:
        """Of each pattern, the longest stretch that a name has to hold as it is."""
        return [max(SIGNS.split(pattern), key=len) for pattern in self._positive]

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """What every name matches that a pattern fits: of thousands hardly any does."""
        return _any_of(translate(pattern) for pattern in self._positive if "/" not in pattern)

    @cached_property
    def _paths(self) -> re.Pattern[str]:
        """What is in every path that a pattern with a slash fits."""
        return _any_of(f"/{translate(pattern)}" for pattern in self._positive if "/" in pattern)

    @property
    def _positive(self) -> list[str]:
        return [pattern.casefold() for pattern in self.patterns if not pattern.startswith("!")]

    @property
    def globs(self) -> list[str]:
        """Globs that find every such file, and some others."""
        found = [f"**/{pattern}" for pattern in self.patterns if not pattern.startswith("!")]
        return found + [f"{glob}*" for glob in found if glob.endswith("/*")]


def _any_of(regexes: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(regexes) or "(?!)")
