"""Has the fork server run efrit-budget: SOCKET ARGUMENT..., with this process's own streams.

It is started as `python -I -S`, and imports next to nothing, so that it costs little.
"""

import marshal
import os
import signal
import socket
import sys

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Those that are passed on."""


def ask(server: socket.socket) -> None:
    """Ask for a child, and leave it the standard streams.

    Standard input stays open here too: Emacs, which learns of the end of this process alone, may
    write to a child that has ended, and in batch would be killed for it.
    """
    folder = os.getcwdb()  # noqa: PTH109  loading pathlib takes as long as all the rest
    request = marshal.dumps((os.getpid(), sys.argv[2:], dict(os.environb), folder))
    socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(request)
    os.closerange(1, 3)


def end_as(code: int) -> None:
    """End with an exit code, or by a signal where the code is its negative number."""
    if code < 0:
        if -code in SIGNALS:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


with socket.socket(socket.AF_UNIX) as connected:
    connected.connect(sys.argv[1])
    ask(connected)
    for number in SIGNALS:
        signal.signal(number, lambda taken, _: connected.send(bytes([taken])))
    end_as(int(connected.recv(16) or b"1"))
