"""Recognize files that are likely to hold secrets by their names."""

import re
from collections.abc import Iterable
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
"""Patterns of secret files, as in .gitignore: the last match decides; `a/b` is a path's end."""

SIGNS = re.compile(r"\[.*?\]|[*?\[\]]")


@dataclass(frozen=True)
class Secrets:
    """The patterns of files that need the person's consent."""

    patterns: tuple[str, ...] = PATTERNS

    def holds(self, name: str) -> bool:
        """Return whether a file with this name or path is likely to hold secrets.

        A pattern without a slash matches only the file's own name, not its folders.
        """
        if not self.fit(name):
            return False
        path = f"/{name.casefold()}"
        base = path.rpartition("/")[2]
        found = False
        for pattern in self.patterns:
            bare = pattern.removeprefix("!").casefold()
            fits = fnmatchcase(path, f"*/{bare}") if "/" in bare else fnmatchcase(base, bare)
            if fits:
                found = not pattern.startswith("!")
        return found

    def fit(self, name: str) -> bool:
        """Return whether a pattern other than an exception (`!`) matches this name or path."""
        path = f"/{name.casefold()}"
        base = path.rpartition("/")[2]
        return bool(self._names.match(base) or self._paths.search(path))

    def may_be_in(self, names: str) -> bool:
        """Return False if none of these joined names can be secret, and True if one may be."""
        folded = names.casefold()
        return any(part in folded for part in self._parts)

    @cached_property
    def _parts(self) -> list[str]:
        """The longest literal part of each pattern."""
        return [max(SIGNS.split(pattern), key=len) for pattern in self._positive]

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """A regular expression for the names that a pattern without a slash matches."""
        return _any_of(translate(pattern) for pattern in self._positive if "/" not in pattern)

    @cached_property
    def _paths(self) -> re.Pattern[str]:
        """A regular expression for the ends of paths that a pattern with a slash matches."""
        return _any_of(f"/{translate(pattern)}" for pattern in self._positive if "/" in pattern)

    @property
    def _positive(self) -> list[str]:
        return [pattern.casefold() for pattern in self.patterns if not pattern.startswith("!")]


def _any_of(regexes: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(regexes) or "(?!)")
