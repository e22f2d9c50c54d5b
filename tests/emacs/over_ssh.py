"""An sshd on loopback, and an Emacs that works in projects behind it."""

from __future__ import annotations

import json
import os
import queue
import shlex
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.emacs.batch import ROOT, batch
from tests.emacs.delaying import delayed
from tests.processes import until

NAMES = ("there", "elsewhere")
HOST, OTHER_HOST = (f"/ssh:{name}:" for name in NAMES)
"""Two names of the same machine, which are two machines for an Emacs."""
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PidFile none
"""
PASSWD = """\
efrit:x:{uid}:{gid}::{folder}/home:/bin/sh
sshd:x:65534:65534::/run/sshd:/usr/sbin/nologin
"""
GROUP = "efrit:x:{gid}:\nnogroup:x:65534:\n"
CLIENT = """\
Host {names}
  HostName 127.0.0.1
  Port {front}
  User efrit
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking accept-new
"""
INSTALL_SECONDS = 300
SHARED = "  ControlMaster auto\n  ControlPath {folder}/%C\n  ControlPersist 60\n"
"""The lines of a person's ~/.ssh/config that make connections to a host share one."""


def script(name: str) -> str:
    """Run a script of .ci, and give the line that it prints."""
    ended = subprocess.run([ROOT / ".ci" / name], stdout=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 0, f".ci/{name} failed: what it said is above"
    return ended.stdout.strip()


@dataclass(frozen=True)
class Machine:
    """The folder of the other machine, with keys, settings and a home.

    If `shared`, the person's ssh settings let connections share one, not TRAMP's. Its sshd listens
    on `port`, and ssh goes to `front`, which may be a proxy's.
    """

    folder: Path
    port: int
    front: int
    shared: bool

    @property
    def client(self) -> Path:
        """The folder of an ssh that knows the machine by name."""
        return self.folder / "client"

    def settle(self, programs: Path, *, bare: bool) -> None:
        """Write keys, settings and programs; the sidecar's own unless the machine is `bare`."""
        for name in ("key", "host_key"):
            new = ["-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run([programs / "ssh-keygen", *new], check=True)
        named = {"folder": self.folder, "port": self.port, "front": self.front}
        named["names"] = " ".join(NAMES)
        ids = {"uid": os.getuid(), "gid": os.getgid()}
        self._write("passwd", PASSWD.format(**named, **ids))
        self._write("group", GROUP.format(**ids))
        self._write("sshd_config", SERVER.format(**named))
        own = SHARED.format(**named) if self.shared else ""
        self._write("ssh_config", CLIENT.format(**named) + own)
        self._write("client/ssh", f'exec {programs}/ssh -F {self.folder}/ssh_config "$@"', True)
        (self.folder / "home").mkdir()
        if bare:
            return
        sidecar = shlex.quote(str(ROOT / ".venv" / "bin" / "efrit-budget"))
        start = f'EFRIT_BUDGET_HOME={self.folder}/budget exec {sidecar} "$@"'
        self._write("home/.local/bin/efrit-budget", start, True)
        (self.folder / "home/.local/bin/rg").symlink_to(ROOT / ".venv" / "bin" / "rg")

    def environment(self) -> dict[str, str]:
        """Return the environment of the machine's sshd."""
        passwd, group = str(self.folder / "passwd"), str(self.folder / "group")
        return os.environ | {"NSS_WRAPPER_PASSWD": passwd, "NSS_WRAPPER_GROUP": group}

    def ssh(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run its ssh to the end."""
        return subprocess.run(
            [self.client / "ssh", *arguments], capture_output=True, text=True, check=False
        )

    def _write(self, name: str, text: str, is_program: bool = False) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n" if is_program else text, encoding="utf-8")
        file.chmod(0o755 if is_program else 0o600)


@contextmanager
def machine(shared: bool = False, delay: float = 0.0, *, bare: bool = False) -> Iterator[Machine]:
    """Run an sshd that lets its own key in, as whoever runs the test.

    With a `delay`, everything passes so many seconds late in each direction. A `bare` machine has
    no sidecar.
    """
    programs = Path(script("sshd"))
    if os.getuid() == 0:
        # Where Debian's sshd goes before it knows who comes.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    way = delayed(port, delay) if delay else nullcontext(port)
    with tempfile.TemporaryDirectory(prefix="ssh-") as folder, way as front:
        there = Machine(Path(folder), port, front, shared)
        there.settle(programs, bare=bare)
        with running(programs / "sshd", there):
            yield there
            there.ssh("-O", "exit", NAMES[0])


@contextmanager
def running(sshd: Path, there: Machine) -> Iterator[None]:
    """Run the machine's sshd; fail with what it says where nobody can log in."""
    log = there.folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", there.folder / "sshd_config"],
            stderr=file,
            env=there.environment(),
        )
    try:
        assert until(lambda: process.poll() is not None or listens(there.port))
        login = there.ssh("-o", "ControlMaster=no", NAMES[0], "true")
        assert login.returncode == 0, f"no login: {login.stderr}\n{log.read_text()}"
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Return whether something listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Driver:
    """A batch Emacs that runs whole sessions."""

    def __init__(self, process: subprocess.Popen[str], there: Machine) -> None:
        self._process = process
        self._shared = there.shared
        self._programs = there.folder / "home/.local/bin"
        self._lines: queue.Queue[str] = queue.Queue()
        self._done: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def begin(self, sessions: Mapping[str, tuple[Path, str]]) -> None:
        """Begin a session on each host, named as TRAMP does, in a project with a model's URL."""
        self._done.clear()
        asked = [
            {
                "root": f"{host}{root}/",
                "url": f"{url}/v1/messages",
                "task": "Go on.",
                "shared": self._shared,
                "programs": str(self._programs),
            }
            for host, (root, url) in sessions.items()
        ]
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

    def install(self, host: str) -> str:
        """Have the sidecar installed on a host; return what Emacs says about it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"install": host}) + "\n")
        self._process.stdin.flush()
        return str(self.next("END", INSTALL_SECONDS)["text"])

    def connections(self) -> list[int]:
        """Return the process ids of the ssh programs that Emacs runs, the latest last."""
        found = [int(file.parent.name) for file in Path("/proc").glob("[0-9]*/stat")]
        return sorted(pid for pid in found if _is_ssh_of(self._process.pid, pid))

    def next(self, word: str, seconds: float) -> dict[str, Any]:
        """Return the value of Emacs's next line; fail if it is late or begins with another word."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"Emacs hangs after {self._done}") from None
        assert line, f"Emacs ended after {self._done}"
        self._done.append(line[:200])
        said, _, value = line.partition(" ")
        assert said == word, f"{line} after {self._done}"
        given: dict[str, Any] = json.loads(value)
        return given


@contextmanager
def driver(there: Machine, emacs: str) -> Iterator[Driver]:
    """Run an Emacs whose ssh knows the machine."""
    home = there.folder / "person"
    home.mkdir()
    also = {
        "EMACS": emacs,
        "PATH": f"{there.client}:{os.environ['PATH']}",
        "TMPDIR": str(there.folder),
    }
    process = batch("ssh-driver.el", home, also=also, stdin=subprocess.PIPE)
    with process:
        try:
            yield Driver(process, there)
        finally:
            process.kill()


def _is_ssh_of(parent: int, pid: int) -> bool:
    """Return whether a process is an ssh that another one started."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    name, _, rest = facts.partition("(")[2].rpartition(")")
    return name.startswith("ssh") and int(rest.split()[1]) == parent
