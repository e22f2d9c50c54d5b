"""Globs with the rules of rg and git: `*` stays in a folder, `**` crosses them."""

import re
from dataclasses import dataclass
from functools import cached_property

from efrit_budget.errors import EfritError

MOST_GLOB = 1000
SPECIAL = re.compile(r"[*?\[\]{}\\!#]")
NOT_UTF8 = re.compile("[\udc80-\udcff]")
TOKEN = re.compile(
    r"(?s)(?P<folders>(?:(?<=/)|^)\*\*/)|(?P<below>(?<=/)\*\*$)|(?P<many>\*+)|(?P<one>\?)"
    r"|\[(?P<negated>[!^]?)(?P<signs>\]?[^\]]*)\]|(?P<open>\{)|(?P<close>\})|(?P<or>,)"
    r"|\\(?P<escaped>.)|(?P<sign>.)"
)


class GlobError(EfritError):
    """A glob is invalid."""


@dataclass(frozen=True)
class Glob:
    """A glob; one with a slash is matched from the root."""

    text: str

    @property
    def excludes(self) -> bool:
        """Return whether the glob excludes files."""
        return self.text.startswith("!")

    @property
    def is_of_names(self) -> bool:
        """Return whether the glob matches names in any folder."""
        return "/" not in self.text

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        bare = self.text.removeprefix("!")
        anywhere = "(?:.*/)?" if self.is_of_names else ""
        below = "(?:/.*)?" if self.excludes else ""
        try:
            return re.compile(f"(?s){anywhere}{_translated(bare.removeprefix('/'))}{below}")
        except re.error as error:
            raise GlobError(f"the glob {self.text!r} cannot be read: {error.msg}") from error

    def check(self) -> None:
        """Raise if the glob holds a NUL, is too long, matches no name, or has bad syntax."""
        if "\0" in self.text:
            raise GlobError("a glob cannot hold a NUL byte")
        if len(self.text) > MOST_GLOB:
            raise GlobError(f"a glob has at most {MOST_GLOB:,} characters")
        if NOT_UTF8.search(self.text) or not self.text.removeprefix("!").strip("/"):
            raise GlobError(f"the glob {self.text!r} fits no name")
        self._regex  # noqa: B018  parses the glob

    def takes(self, name: str) -> bool:
        """Return whether the glob selects a path from the root; `!x` selects all but x."""
        return self.matches(name) != self.excludes

    def matches(self, name: str) -> bool:
        """Return whether a path from the root fits the glob, be it excluded by it or not."""
        return self._regex.fullmatch(name) is not None


@dataclass(frozen=True)
class Globs:
    r"""Globs with commas between; of those that match a path, the last decides.

    If the first excludes, all other paths are selected. A comma of a name is written `\,`.
    """

    text: str

    @cached_property
    def _globs(self) -> list[Glob]:
        parts, depth, start = [], 0, 0
        for token in TOKEN.finditer(self.text):
            depth += (token["open"] is not None) - (token["close"] is not None)
            if token["or"] is not None and depth <= 0:
                parts.append(self.text[start : token.start()].strip())
                start = token.end()
        parts.append(self.text[start:].strip() if parts else self.text)
        return [Glob(part) for part in parts if part or len(parts) == 1]

    def check(self) -> None:
        """Raise if one of the globs is invalid."""
        for glob in self._globs:
            glob.check()

    def takes(self, name: str) -> bool:
        """Return whether the globs select a path from the root."""
        taken = self._globs[0].excludes
        for glob in self._globs:
            if glob.matches(name):
                taken = not glob.excludes
        return taken


def _translated(glob: str) -> str:
    parts: list[str] = []
    depth = 0
    for token in TOKEN.finditer(glob):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if depth < 0 or token["sign"] == "[":
            break
        parts.append(_part(token, in_braces=depth > 0))
    else:
        if depth == 0:
            return "".join(parts)
    raise GlobError(f"the glob {glob!r} has a bracket or brace without its partner")


def _part(token: re.Match[str], *, in_braces: bool) -> str:
    fixed = {
        "folders": "(?:[^/]*/)*",
        "below": ".+",
        "many": "[^/]*",
        "one": "[^/]",
        "open": "(?:",
        "close": ")",
        "or": "|" if in_braces else ",",
    }
    kind = str(token.lastgroup)
    if kind == "signs":
        signs = re.sub(r"([\\\[\]&~|^])", r"\\\1", token["signs"])
        return f"(?!/)[{'^' if token['negated'] else ''}{signs}]"
    return fixed.get(kind) or re.escape(token[kind])


def exactly(name: str) -> str:
    """Return the glob that matches exactly this path.

    rg drops blanks at a glob's end, unless they are in brackets.
    """
    quoted = SPECIAL.sub(r"\\\g<0>", NOT_UTF8.sub("\0", name)).replace("\0", "?")
    if quoted[-1:].isspace():
        quoted = f"{quoted[:-1]}[{quoted[-1]}]"
    return quoted if quoted.startswith("/") else f"/{quoted}"
