"""The Messages API."""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

from efrit_budget.budget.models import Model
from efrit_budget.demo.api import Api, Asked
from efrit_budget.demo.binding import Binder, Checked
from efrit_budget.demo.body import parse_body
from efrit_budget.demo.cache import CachedPrompt, miss_reason, prompt
from efrit_budget.demo.conversation import ParsedRequest
from efrit_budget.demo.messages.errors import MESSAGES, error_body, kind_of
from efrit_budget.demo.messages.reply import usage, whole
from efrit_budget.demo.messages.request import parse_request
from efrit_budget.demo.messages.rules import capabilities, check_last, check_rules
from efrit_budget.demo.messages.shapes import (
    BETAS,
    CountRequest,
    MessageRequest,
    check_betas,
    check_shape,
)
from efrit_budget.demo.messages.stream import MessagesStream
from efrit_budget.demo.messages.threads import Threads
from efrit_budget.demo.models import Catalog
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.replies import Ids, Reply
from efrit_budget.demo.stream import Event
from efrit_budget.demo.usage import Meter
from efrit_budget.errors import JsonObject

REMEMBERED = 1_000
"""The number of replies whose prompts are kept, to tell why a later prompt missed the cache."""
KEYS: Mapping[str, tuple[int, str]] = {
    "bad": (401, "invalid x-api-key"),
    "nocredit": (402, MESSAGES[402]),
    "forbidden": (403, MESSAGES[403]),
}
"""The status and message for API keys that are refused in tests."""
BETA = re.compile(r"[a-z0-9-]+-\d{4}-\d\d-\d\d")


class MessagesApi(Api):
    """Reads and writes the form of the Messages API."""

    id_header = "request-id"
    ids = Ids("msg_01", "toolu_01", 22)
    error_messages = MESSAGES
    has_marks = True

    def __init__(self, binder: Binder, meter: Meter, catalog: Catalog, *, needs_key: bool) -> None:
        self._binder = binder
        self._meter = meter
        self._catalog = catalog
        self._needs_key = needs_key
        self._threads = Threads()
        self._prompts: OrderedDict[str, CachedPrompt] = OrderedDict()
        self._lock = threading.Lock()

    def check_headers(self, headers: Mapping[str, str]) -> frozenset[str]:
        """Return the betas of a request; raise if its key, its version or a beta is refused."""
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        key = headers.get("x-api-key") or bearer
        if self._needs_key:
            if not key:
                raise ApiError("x-api-key header is required", status=401)
            if key in KEYS:
                status, text = KEYS[key]
                raise ApiError(text, status=status)
        if not headers.get("anthropic-version"):
            raise ApiError("anthropic-version: header is required")
        named = headers.get("anthropic-beta", "").split(",")
        betas = frozenset(name.strip() for name in named if name.strip())
        if unknown := sorted(name for name in betas if not BETA.fullmatch(name)):
            raise ApiError(f"Unexpected value(s) `{unknown[0]}` for the `anthropic-beta` header.")
        return betas

    def count(self, raw: bytes, betas: frozenset[str]) -> JsonObject:
        """Return the reply to a `count_tokens` request."""
        request, _ = self._parse(raw, betas, CountRequest)
        return {"input_tokens": prompt(request, self._meter).tokens}

    def read(self, raw: bytes, betas: frozenset[str]) -> Asked:
        """Return the request of a body, without the thinking blocks that it lets be dropped."""
        request, model = self._parse(raw, betas, MessageRequest)
        drops = (request.thinking.get("block_binding") or {}).get("prefix_mismatch_behavior")
        checked = self._binder.check(request, is_bound=model.binding, drops=drops == "drop_block")
        return Asked(
            request=request.without(frozenset(checked.dropped)),
            model=model,
            sign=self._signer(checked),
            betas=betas,
            dropped=checked.dropped,
        )

    def _parse(
        self, raw: bytes, betas: frozenset[str], shape: type[CountRequest]
    ) -> tuple[ParsedRequest, Model]:
        body = parse_body(raw)
        check_shape(body, shape)
        check_betas(body, betas)
        model = self._catalog.find(body["model"])
        if model is None:
            raise ApiError(f"model: {body['model']}", status=404)
        request = parse_request(self._threads.whole(body))
        check_rules(request, capabilities(model))
        return request, model

    def _signer(self, checked: Checked) -> Callable[[str, int], str]:
        """Return a function that signs thinking behind the checked past."""

        def sign(text: str, tokens: int) -> str:
            checked.past.enter("assistant")
            return self._binder.sign(checked.past.digest(), checked.previous, text, tokens)

        return sign

    def check_end(self, asked: Asked, *, is_paused: bool) -> None:
        """Raise if the request ends with an assistant message that is not a paused reply."""
        check_last(asked.request, is_paused=is_paused)

    def too_long(self, tokens: int, asked: Asked) -> ApiError:
        """Return the error for a prompt of so many tokens, more than the window has room for."""
        window = asked.model.window
        if tokens > window:
            return ApiError(f"prompt is too long: {tokens} tokens > {window} maximum")
        return ApiError(
            f"input length and `max_tokens` exceed context limit: {tokens} + "
            f"{asked.request.max_tokens} > {window}, decrease input length or `max_tokens`"
        )

    def complete(self, reply: Reply, asked: Asked) -> None:
        """Add diagnostics and input transformations, and hold the thread, if they are asked for."""
        reply.usage = reply.entry.usage or "end"
        self._threads.hold(asked.request.body, reply)
        diagnostics = asked.request.body.get("diagnostics")
        with self._lock:
            if diagnostics is not None:
                before = diagnostics.get("previous_message_id")
                reason = miss_reason(self._prompts.get(before), reply.prompt) if before else None
                reply.extra["diagnostics"] = reason and {"cache_miss_reason": reason}
            self._prompts[reply.id] = reply.prompt
            while len(self._prompts) > REMEMBERED:
                self._prompts.popitem(last=False)
        if BETAS["block_binding"] in asked.betas:
            reply.extra["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}
                for path in asked.dropped
            ]

    def body(self, reply: Reply) -> JsonObject:
        """Return the whole reply."""
        return whole(reply)

    def events(self, reply: Reply) -> Iterator[Event]:
        """Yield the events of the reply as a stream; one that `is_last` ends it early."""
        return MessagesStream(reply).events()

    def usage(self, reply: Reply) -> JsonObject:
        """Return the tokens of the prompt and of the reply."""
        return usage(reply)

    def error_body(self, error: ApiError) -> JsonObject:
        """Return an error as the Messages API writes it."""
        return error_body(kind_of(error.status), error.message, error.request_id, error.details)
