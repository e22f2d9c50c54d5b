"""Message threads: conversations that the endpoint holds, so that only what is new is sent."""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.replies import Reply
from efrit_budget.errors import JsonObject

SECONDS = 300.0
"""The time for which a thread is held after its last reply."""
MOST_THREADS = 1_000
HELD = ("system", "tools")
"""The fields that a thread keeps, and that a request which continues it leaves out."""


@dataclass(frozen=True)
class Thread:
    """A conversation up to a reply."""

    until: float
    fields: JsonObject
    messages: list[JsonObject]


class Threads:
    """The threads by the id of their last reply; safe to use concurrently."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Thread] = OrderedDict()
        self._lock = threading.Lock()

    def whole(self, body: JsonObject) -> JsonObject:
        """Return a body with the conversation that it continues; raise if that is not held."""
        asked = body.get("thread") or {}
        if asked.get("type") != "continue":
            return body
        if repeated := [name for name in HELD if name in body]:
            raise ApiError(f"{repeated[0]}: cannot be set on a request that continues a thread")
        with self._lock:
            thread = self._held.get(asked["previous_message_id"])
        if thread is None or thread.until < time.monotonic():
            details = {"error_code": "thread_not_found"}
            raise ApiError("thread: not found", status=404, details=details)
        return {**body, **thread.fields, "messages": [*thread.messages, *body["messages"]]}

    def hold(self, body: JsonObject, reply: Reply) -> None:
        """Hold the conversation of a whole body and its reply, if the request asks for it."""
        has_ids = all("id" in block or block["type"] != "tool_use" for block in reply.blocks)
        if not body.get("thread") or reply.entry.is_fault or not has_ids:
            return
        said = {"role": "assistant", "content": reply.blocks}
        fields = {name: body[name] for name in HELD if name in body}
        thread = Thread(time.monotonic() + SECONDS, fields, [*body["messages"], said])
        with self._lock:
            self._held[reply.id] = thread
            while len(self._held) > MOST_THREADS:
                self._held.popitem(last=False)
