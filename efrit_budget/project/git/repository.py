"""Run git so that it starts no other program, whatever the settings say."""

import logging
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path

from efrit_budget.cancellation import Cancellation
from efrit_budget.project.file_cache import FileCache, Sources
from efrit_budget.project.git.folder import GitError, GitFolder, git_folder
from efrit_budget.project.git.settings_files import personal_files
from efrit_budget.project.paths import shown_name
from efrit_budget.project.processes.confinement import MOST_MEMORY, Confinement
from efrit_budget.project.processes.environment import own_without_keys
from efrit_budget.project.processes.programs import find_program
from efrit_budget.project.processes.run import Finished, run

log = logging.getLogger(__name__)

OLDEST = (2, 31)
"""The first version of git that reads settings of any name from the environment."""
TIMEOUT_SECONDS = 120.0
MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of output that are read from git: some five million tokens."""
MOST_LOGGED = 1000
"""The characters of git's error output that are logged."""
DAMAGED = "an object of {top} is missing or damaged. The person can run 'git fsck' there"
KNOWN = {
    "not a git repository": "{top}/.git is no repository that git can read. The person can run "
    "'git fsck' there to see why",
    "bad config": "git cannot read the settings of {top}: a line is broken, or names a file "
    "outside the project, which git is not given. The person sees where by 'git config --list'",
    "does not have any commits yet": "the repository has no commits yet",
    "bad object": DAMAGED,
    "unable to read": DAMAGED,
}
"""Error messages for the model, by words in git's error output; the first match is used."""
UNKNOWN = (
    "git could not do it. What it says may quote files from outside the project, so it is in the "
    "log alone. In {top}, 'git fsck' and 'git status' show the person what is wrong"
)

NOTHING = os.devnull
SETTINGS = {
    # Programs
    "core.hooksPath": NOTHING,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "true",
    "core.askPass": "true",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "gpg.program": "false",
    "log.showSignature": "false",
    "diff.external": "",
    "interactive.diffFilter": "cat",
    "protocol.allow": "never",
    # Other repositories: a bare one among the files, and submodules
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "diff.submodule": "short",
    "status.submoduleSummary": "false",
    # Files elsewhere, of which an error message could quote a line
    "core.attributesFile": NOTHING,
    "blame.ignoreRevsFile": "",
    "diff.orderFile": NOTHING,
    "mailmap.file": "",
    "mailmap.blob": "",
    # The form of the output that is parsed
    "core.quotePath": "true",
    "core.commitGraph": "true",
    # The most memory for a part of a pack, for all packs, and for bases of deltas
    "core.packedGitWindowSize": "32m",
    "core.packedGitLimit": "192m",
    "core.deltaBaseCacheLimit": "96m",
    "color.ui": "false",
    "diff.suppressBlankEmpty": "false",
    "diff.wsErrorHighlight": "none",
    "diff.interHunkContext": "0",
    "i18n.logOutputEncoding": "UTF-8",
    "log.diffMerges": "separate",
}
"""Settings of git that override those of every settings file."""
ENVIRONMENT = {
    "LC_ALL": "C",
    "PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "SSH_ASKPASS": "true",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}
BESIDE = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
"""Files that git reads in the folders above a project, up to the top of its repository."""
FILTERS = re.compile(r"filter\..*\.(clean|smudge|process|required)", re.DOTALL)
FILTERS_AND_INCLUDES = r"^(filter\..*\.(clean|smudge|process|required)|include(if\..*)?\.path)$"


@cache
def find() -> str:
    """Return the path of git from PATH; raise if it is missing or too old."""
    program = find_program("git")
    if program is None:
        raise GitError("git is not installed; the person can install it, 2.31 or newer")
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r"(\d+)\.(\d+)", shown.stdout)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise GitError(f"{program} is too old ({shown.stdout.strip()}); 2.31 or newer is needed")
    return program


@dataclass(frozen=True)
class Repository:
    """The repository of a project, of which only files below the root are shown."""

    program: str
    root: Path
    folder: GitFolder
    filters: tuple[str, ...]
    """The names of the settings that define filter programs."""
    cancellation: Cancellation

    @cached_property
    def prefix(self) -> str:
        """The root's path in the repository, ending in a slash; empty if the root is the top."""
        inner = os.path.relpath(self.root.resolve(), self.folder.top)
        return "" if inner == "." else f"{inner}/"

    @property
    def scope(self) -> tuple[str, ...]:
        """The path arguments that keep git's output inside the root."""
        return (".",) if self.prefix else ()

    def run(
        self,
        *arguments: str,
        paths: Sequence[str] = (),
        given: bytes | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> Finished:
        """Run a git command and return its output; raise if it fails."""
        behind = ["--", *paths] if paths else []
        finished = self._run([*arguments, *behind], given, most_bytes)
        if finished.code != 0 and not finished.cut:
            raise self._error_of(finished)
        return finished

    def _run(self, arguments: Sequence[str], given: bytes | None, most_bytes: int) -> Finished:
        command = [self.program, "--no-pager", *arguments]
        if any("\0" in argument for argument in command):
            raise GitError("no argument can hold a NUL byte")
        try:
            finished = run(
                command,
                cwd=self.root,
                cancellation=self.cancellation,
                timeout=TIMEOUT_SECONDS,
                env=_environment(self.folder.top, self.filters),
                given=given,
                most_bytes=most_bytes,
                confinement=self._confinement,
            )
        except OSError as error:
            raise GitError(f"git cannot be run in {self.root}: {error.strerror}") from error
        if finished.waited:
            raise GitError(
                "git waits for a file that never ends or never begins: a .gitignore that is a "
                "pipe, say (find . -name .gitignore -type p). Remove it, then call again."
            )
        if finished.out_of_memory:
            raise GitError(
                f"git needs more than {MOST_MEMORY // 2**20} MiB of memory for this; ask for less, "
                "by path or with a simpler pattern"
            )
        if finished.timed_out:
            raise GitError(
                f"git took longer than {TIMEOUT_SECONDS:.0f} seconds; ask for less, by path"
            )
        return finished

    @cached_property
    def _confinement(self) -> Confinement:
        """The files that git may open: project, repository and the person's settings."""
        found = self.folder
        root = self.root.resolve()
        above = [folder for folder in root.parents if folder.is_relative_to(found.top)]
        beside = [folder / name for folder in above for name in BESIDE]
        kept = (found.top / ".git", found.own, found.shared, *found.lenders)
        plain = (path for path in beside if not path.is_symlink())
        readable = (root, *kept, *plain, *personal_files())
        return Confinement(self.program, readable, maps_files=True)

    def _error_of(self, finished: Finished) -> GitError:
        said = finished.stderr.decode("utf-8", "replace").strip()
        top = shown_name(str(self.folder.top))
        if "dubious ownership" in said:
            return GitError(
                f"git does not look into {top}, because the repository belongs to another user. "
                "If the person trusts it, they can run: "
                f"git config --global --add safe.directory {top}"
            )
        if "safe.bareRepository" in said or "cannot use bare repository" in said:
            return GitError(
                f"{shown_name(str(self.root))} itself looks like a bare repository, which a "
                "project may have brought with it, so git does not look into it. If it is meant, "
                "work in a clone of it."
            )
        known = next((words for mark, words in KNOWN.items() if mark in said), UNKNOWN)
        log.warning("git in %s: %r", top, said[:MOST_LOGGED])
        return GitError(known.format(top=top), complaint=said)

    def find_filters(self, sources: Sources) -> tuple[str, ...]:
        """Return the names of settings that define filters; no filter is run."""
        folder = self.folder
        for file in (*personal_files(), folder.shared / "config", folder.own / "config.worktree"):
            sources.add(file)
        listing = ["config", "-z", "--name-only", "--get-regexp", FILTERS_AND_INCLUDES]
        finished = self._run(listing, None, MOST_BYTES)
        if finished.cut or (finished.code != 0 and finished.stderr):
            raise self._error_of(finished)
        found = dict.fromkeys(map(os.fsdecode, finished.stdout.split(b"\0")[:-1]))
        filters = tuple(name for name in found if FILTERS.fullmatch(name))
        home, own = os.environ.get("HOME", ""), os.environ.get("XDG_CONFIG_HOME") or "/"
        are_absolute = home.startswith("/") and own.startswith("/")
        if len(filters) < len(found) or not are_absolute:
            sources.complete = False  # files without a stamp may define filters
        return filters


def open_repository(root: Path, cancellation: Cancellation) -> Repository:
    """Return the repository that `root` is in."""
    bare = Repository(find(), root, git_folder(root), (), cancellation)
    filters = _filters.get((bare.program, bare.folder, personal_files()), bare.find_filters)
    return replace(bare, filters=filters)


_filters: FileCache[tuple[str, GitFolder, tuple[Path, ...]], tuple[str, ...]] = FileCache()


def _environment(top: Path, filters: tuple[str, ...]) -> dict[str, str]:
    """Return the environment for git: without keys, and with GIT_ variables only as set here."""
    own = own_without_keys()
    kept = {name: value for name, value in own.items() if not name.startswith("GIT_")}
    return kept | ENVIRONMENT | _settings(filters) | {"GIT_WORK_TREE": str(top)}


@lru_cache(maxsize=20)
def _settings(filters: tuple[str, ...]) -> dict[str, str]:
    """Return the variables that pass SETTINGS to git, and turn the filters off."""
    settings = SETTINGS | {name: "false" if name.endswith(".required") else "" for name in filters}
    told = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        told[f"GIT_CONFIG_KEY_{number}"] = name
        told[f"GIT_CONFIG_VALUE_{number}"] = value
    return told
