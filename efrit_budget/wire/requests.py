"""The requests in progress, and the collected replies of a batch of requests."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from efrit_budget.errors import InvalidRequestError, Json
from efrit_budget.wire.call import Call
from efrit_budget.wire.request import Request

PROGRESS_AFTER_SECONDS = 0.5

Reply = Callable[[dict[str, Json] | None], None]
"""Sends the reply to a request; takes None for a notification, which gets no reply."""


@dataclass(eq=False)
class Job:
    """A request in progress and its reply function."""

    request: Request
    reply: Reply
    say: Callable[[Json], None]
    """Sends the client a notification about this request."""
    call: Call = field(default_factory=Call)
    size: int = 0
    """The bytes of the request's message, or of the request's share of a batch."""
    begun: float = field(default_factory=time.monotonic)
    next_progress: float = PROGRESS_AFTER_SECONDS
    shown: str = ""
    """The output in the last progress notification that had one."""
    taken: bool = False
    answered: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Claim the request, to run or to refuse it; return True to the first caller alone."""
        with self.lock:
            was_taken, self.taken = self.taken, True
        return not was_taken

    def say_progress(self) -> None:
        """Send `$/progress` if it is due, and the request has an id and no reply yet."""
        with self.lock:
            if self.answered or self.request.id is None:
                return
            seconds = time.monotonic() - self.begun
            output = self._new_output() if seconds >= PROGRESS_AFTER_SECONDS else None
            if output is not None or seconds >= self.next_progress:
                self.next_progress = seconds + PROGRESS_AFTER_SECONDS
                params = self._progress_params(seconds, output)
                self.say({"jsonrpc": "2.0", "method": "$/progress", "params": params})

    def _new_output(self) -> str | None:
        """Return the output if it has changed since the last report, or None."""
        newest = self.call.progress.output
        output = self.shown if newest is None else newest()
        if output == self.shown:
            return None
        self.shown = output
        return output

    def _progress_params(self, seconds: float, output: str | None) -> dict[str, Json]:
        progress = self.call.progress
        value: dict[str, Json] = {
            "message": progress.message or f"{self.request.method} is running",
            "done": progress.done,
            "total": progress.total,
            "seconds": round(seconds, 1),
        }
        if output is not None:
            value["output"] = output
        return {"token": self.request.id, "tool_use_id": self.request.tool_use_id, "value": value}


def _key(request_id: Json) -> tuple[bool, Json]:
    return isinstance(request_id, str), request_id


class RequestTable:
    """All requests in progress, notifications included."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: set[Job] = set()
        self._ids: set[tuple[bool, Json]] = set()

    def admit(self, job: Job) -> None:
        """Add a request; raise if a request in progress has the same id."""
        with self._lock:
            if job.request.id is not None:
                if _key(job.request.id) in self._ids:
                    raise InvalidRequestError("a request with this id is in progress")
                self._ids.add(_key(job.request.id))
            self._jobs.add(job)

    def release(self, job: Job) -> bool:
        """Remove a request that is about to be answered; return False if it was answered before."""
        with job.lock:
            job.answered = True
        with self._lock:
            if job not in self._jobs:
                return False
            self._jobs.remove(job)
            self._ids.discard(_key(job.request.id))
            return True

    def all(self) -> list[Job]:
        """Return the requests in progress."""
        with self._lock:
            return list(self._jobs)

    def about(self, params: dict[str, Json]) -> Iterator[Job]:
        """Yield the requests with the `id` or the `tool_use_id` in these params."""
        use_id = params.get("tool_use_id")
        for job in self.all():
            own_id = job.request.id
            by_id = own_id is not None and "id" in params and _key(own_id) == _key(params["id"])
            if by_id or (use_id is not None and use_id == job.request.tool_use_id):
                yield job


class Batch:
    """Collects the replies of a batch, and sends them as one array after the last."""

    def __init__(self, members: int, send: Callable[[bytes], None]) -> None:
        self._missing = members
        self._send = send
        self._lock = threading.Lock()
        self._replies: list[bytes] = []

    def take(self, reply: bytes | None) -> None:
        """Add one request's reply as JSON text, or None for a notification."""
        with self._lock:
            self._missing -= 1
            if reply is not None:
                self._replies.append(reply)
            whole = self._missing == 0 and bool(self._replies)
        if whole:
            self._send(b"[" + b",".join(self._replies) + b"]")
