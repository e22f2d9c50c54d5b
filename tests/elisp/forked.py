"""Has the fork server run efrit-budget: SOCKET ARGUMENT..., with this process's own streams.

It is started as `python -I -S`, and imports next to nothing, to start quickly: `socket` and
`signal` would load `enum`, and take longer than the interpreter itself.
"""

import _signal  # type: ignore[import-not-found]  # typeshed has none
import _socket
import marshal
import os
import sys

SIGNALS = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)
"""The signals that are passed on to the child."""


def ask(server: _socket.socket) -> None:
    """Ask for a child, and pass it the standard streams.

    Standard input stays open here too: Emacs, which notices only the end of this process, may write
    to a child that has ended, and in batch would be killed for it.
    """
    folder = os.getcwdb()  # noqa: PTH109  loading pathlib takes as long as all the rest
    request = marshal.dumps((os.getpid(), sys.argv[2:], dict(os.environb), folder))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)
    server.sendmsg([len(request).to_bytes(4, "big")], [rights])
    server.sendall(request)
    os.closerange(1, 3)


def end_as(code: int) -> None:
    """End with an exit code, or by a signal where the code is its negative number."""
    if code < 0:
        if -code in SIGNALS:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


connected = _socket.socket(_socket.AF_UNIX)
connected.connect(sys.argv[1])
ask(connected)
for each in SIGNALS:
    _signal.signal(each, lambda taken, _: connected.send(bytes([taken])))
end_as(int(connected.recv(16) or b"1"))
