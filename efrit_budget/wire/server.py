"""The main loop of a connection: read, parse and dispatch messages, reply, and shut down."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from efrit_budget.errors import (
    CancelledError,
    EfritError,
    InvalidRequestError,
    Json,
    ParseError,
    field_error,
)
from efrit_budget.wire import jsontext
from efrit_budget.wire.call import Call, Lane
from efrit_budget.wire.framing import Framer, Framing, Malformed, Message, Piece, dress
from efrit_budget.wire.lanes import WorkLane
from efrit_budget.wire.lifecycle import CANCEL, Lifecycle
from efrit_budget.wire.request import (
    ID_TYPES,
    Request,
    error_reply,
    log_request,
    request_of,
    success_reply,
    unexpected,
)
from efrit_budget.wire.requests import Batch, Job, RequestTable
from efrit_budget.wire.stdio import ProtocolStreams
from efrit_budget.wire.watch import Watchdog, passing_progress_on

if TYPE_CHECKING:
    from efrit_budget.wire.dispatch import Dispatcher

DEFAULT_MAX_MESSAGE_BYTES = 64 * 2**20
QUICK_THREADS = 4
WRITING_THREADS = 4
SLOW_THREADS = 16
QUICK_WAITING = 256
"""The most requests that wait in the quick or writing lane, to be run when the input has ended."""

QUICK_DRAIN_SECONDS = 30.0
"""The seconds after the end of input that the writing lane, then the quick lane, may still work."""
DRAIN_SECONDS = 0.4
"""The seconds that slow requests may still run, once the quick lane has ended its work."""
STOP_SECONDS = 0.2
"""The seconds that cancelled requests get to stop, and then a half-written message to end."""
END_SECONDS = 3.0
"""The seconds until the process is ended by force, once the quick requests are answered."""
TERMINATE_SECONDS = 3.0
"""The seconds from a signal to an end by force; half of them are for a half-written message."""

Send = Callable[[bytes], None]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Application:
    """The dispatcher of the application's methods, and its limit for the size of a message."""

    dispatcher: Dispatcher
    max_message_bytes: int


class Server:
    """Serves one connection over stdin and stdout until the client or a signal ends it."""

    def __init__(self, load: Callable[[], Application], streams: ProtocolStreams) -> None:
        self._load = load
        self._application: Application | None = None
        self._streams = streams
        self._framer = Framer(DEFAULT_MAX_MESSAGE_BYTES)
        self._lifecycle = Lifecycle()
        self._own = {**self._lifecycle.methods(), CANCEL: self._cancel}
        self._table = RequestTable()
        self._lanes = {
            Lane.QUICK: WorkLane("quick", QUICK_THREADS, QUICK_WAITING),
            Lane.WRITING: WorkLane("writing", WRITING_THREADS, QUICK_WAITING),
            Lane.SLOW: WorkLane("slow", SLOW_THREADS),
        }
        self._terminated = False
        self._watchdog = Watchdog(streams, self._leave)

    def run(self, on_exit: Callable[[], None]) -> int:
        """Serve until the connection or a signal ends it; return the exit code of the process.

        `on_exit` is called last, to stop child processes; a watchdog ends a process that hangs.
        """
        signal.set_wakeup_fd(self._streams.make_wakeable(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._watchdog.start(on_exit)
        code = self.serve()
        on_exit()
        return code

    def serve(self) -> int:
        """Serve until the connection ends; return the exit code of the process."""
        with passing_progress_on(self._table):
            self._read_until_end()
            self._finish()
        return self._lifecycle.exit_code

    # Ending

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._terminated = True
        self._watchdog.end_within(TERMINATE_SECONDS)

    def _leave(self) -> None:
        """Stop serving, as the client is gone; set a deadline in case the reader is stuck."""
        self._terminated = True
        self._watchdog.end_within(END_SECONDS - DRAIN_SECONDS)
        self._streams.wake()

    def _finish(self) -> None:
        """End all requests: wait (not after a signal or `exit`), cancel, refuse the rest; close."""
        if not self._terminated and not self._lifecycle.exit_asked:
            self._lanes[Lane.WRITING].wait_until_idle(QUICK_DRAIN_SECONDS)
            self._lanes[Lane.QUICK].wait_until_idle(QUICK_DRAIN_SECONDS)
        seconds = TERMINATE_SECONDS if self._terminated else END_SECONDS
        self._watchdog.end_within(seconds, self._lifecycle.exit_code)
        if not self._terminated and not self._lifecycle.exit_asked:
            self._lanes[Lane.SLOW].wait_until_idle(DRAIN_SECONDS)
        for job in self._table.all():
            self._stop(job)
        self._lanes[Lane.SLOW].wait_until_idle(STOP_SECONDS)
        for job in self._table.all():
            self._refuse(job)
        for lane in self._lanes.values():
            lane.close()
        self._streams.close(seconds / 2 if self._terminated else STOP_SECONDS)

    # Reading

    def _read_until_end(self) -> None:
        while not self._terminated and not self._lifecycle.exit_asked:
            data = self._streams.read()
            self._watchdog.reader_is_alive()
            if data is None:
                continue
            self._take(self._framer.feed(data) if data else self._framer.finish())
            if not data:
                return

    def _take(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            send = partial(self._send, piece.framing)
            if isinstance(piece, Malformed):
                send(jsontext.serialize(error_reply(piece.error)))
            else:
                self._take_message(piece, send)
            if self._lifecycle.exit_asked or self._terminated:
                return

    def _take_message(self, message: Message, send: Send) -> None:
        try:
            value = jsontext.parse(message.body)
        except ParseError as error:
            if not message.stray:
                if message.framing is Framing.HEADER:
                    self._framer.lose_step()
                send(jsontext.serialize(error_reply(error)))
            return
        if message.stray:
            self._framer.regain_step()
        self._take_value(value, len(message.body), send)
        if self._application is None and not self._lifecycle.exit_asked:
            self._loaded()

    def _loaded(self) -> Application:
        """Return the application, loading it on first use."""
        if self._application is None:
            self._application = self._load()
            self._framer.max_bytes = self._application.max_message_bytes
        return self._application

    def _take_value(self, value: Json, size: int, send: Send) -> None:
        if not isinstance(value, list):
            self._take_member(
                value, size, lambda reply: None if reply is None else send(reply), send
            )
        elif not value:
            send(jsontext.serialize(error_reply(InvalidRequestError("empty batch"))))
        else:
            batch = Batch(len(value), send)
            for member in value:
                self._take_member(member, size // len(value), batch.take, send)

    def _take_member(
        self, member: Json, size: int, reply_to: Callable[[bytes | None], None], send: Send
    ) -> None:
        self._watchdog.reader_is_alive()
        request = request_of(member)
        if isinstance(request, dict):
            reply_to(jsontext.serialize(request))
            return
        if request.method not in self._own:
            self._loaded()  # now, so that loading does not count as the request's time
        job = Job(
            request,
            lambda reply: reply_to(None if reply is None else jsontext.serialize(reply)),
            lambda notification: send(jsontext.serialize(notification)),
            Call(handover=self._lifecycle.handover),
            size,
        )
        try:
            self._admit(job)
        except EfritError as error:
            job.reply(None if request.is_notification else error_reply(error, request.id))
        else:
            self._start(job)

    def _admit(self, job: Job) -> None:
        if not self._lifecycle.admits(job.request.method):
            raise InvalidRequestError("this connection is shut down")
        self._table.admit(job)

    def _start(self, job: Job) -> None:
        log.debug("request of %d bytes", job.size)
        if job.request.method in self._own:
            self._answer(job, self._own_reply)
            return
        dispatcher = self._loaded().dispatcher
        dispatcher.arrive(job.request, job.call)
        answer = partial(self._answer, job, dispatcher.reply)
        lane = dispatcher.lane(job.request)
        if lane is Lane.ORDERED:
            answer()
        else:
            self._queue(self._lanes[lane], job, answer)

    def _queue(self, lane: WorkLane, job: Job, answer: Callable[[], None]) -> None:
        """Queue a request in a lane; while the lane's backlog is full, block the reading thread."""

        def leave_and_answer() -> None:
            lane.backlog.leave(job.size)
            answer()

        if lane.backlog.enter(job.size, self._gives_up_waiting):
            lane.submit(leave_and_answer)

    def _gives_up_waiting(self) -> bool:
        """Return whether to stop waiting for room in a lane; note that the reader is not stuck."""
        self._watchdog.reader_is_alive()
        return self._terminated

    # Answering

    def _answer(
        self, job: Job, reply_of: Callable[[Request, Call], dict[str, Json] | None]
    ) -> None:
        if job.take():
            self._reply(job, reply_of(job.request, job.call))

    def _own_reply(self, request: Request, _: Call) -> dict[str, Json] | None:
        """Run a method of the connection itself, such as `initialize`; return its reply, if any."""
        params = request.member.get("params", {})
        try:
            if not isinstance(params, dict):
                raise field_error("params", "they should be an object")
            result = self._own[request.method](params)
        except EfritError as error:
            return None if request.is_notification else error_reply(error, request.id)
        return None if request.is_notification else success_reply(result, request.id)

    def _reply(self, job: Job, reply: dict[str, Json] | None) -> None:
        if not self._table.release(job):
            return
        seconds = time.monotonic() - job.begun
        try:
            job.reply(reply)
        except (ValueError, TypeError, RecursionError) as error:  # a result that is not JSON
            defect = unexpected(error, job.request.method)
            reply = error_reply(defect, job.request.id)
            job.reply(reply)
        log_request(job.request, reply, seconds)

    def _send(self, framing: Framing, reply: bytes) -> None:
        self._streams.write(dress(reply, framing))

    # Cancelling

    def _cancel(self, params: dict[str, Json]) -> None:
        if type(params.get("id")) not in ID_TYPES or not isinstance(
            params.get("tool_use_id", ""), str
        ):
            raise field_error("id", "it should be the id of a request, or tool_use_id a string")
        for job in self._table.about(params):
            self._stop(job)

    def _stop(self, job: Job) -> None:
        """Cancel a request; if no thread has begun to run it, send its error reply at once."""
        job.call.cancellation.cancel()
        if job.take():
            self._refuse(job)

    def _refuse(self, job: Job) -> None:
        refusal = error_reply(CancelledError(), job.request.id)
        self._reply(job, None if job.request.is_notification else refusal)
