"""Check the headers of a request and answer its body, apart from HTTP."""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from efrit_budget.demo.binding import Binder, Checked
from efrit_budget.demo.cache import CachedPrompt, PromptCache, miss_reason, prompt
from efrit_budget.demo.conversation import ParsedRequest, conversation
from efrit_budget.demo.play import Player
from efrit_budget.demo.refusals import ApiError, scripted_error, status_of
from efrit_budget.demo.replies import Reply, Writer, check_expectation
from efrit_budget.demo.rules import Capabilities, capabilities, check_end, check_rules
from efrit_budget.demo.scenario import Scenario
from efrit_budget.demo.shapes import (
    BETAS,
    CountRequest,
    MessageRequest,
    check_betas,
    check_shape,
)
from efrit_budget.demo.usage import Meter
from efrit_budget.errors import JsonObject

REMEMBERED = 1_000
"""The number of replies whose prompts are kept, to tell why a later prompt missed the cache."""
KEYS: Mapping[str, tuple[int, str | None]] = {
    "bad": (401, "invalid x-api-key"),
    "nocredit": (402, None),
    "forbidden": (403, None),
}
"""The status and message (None: the usual one) for API keys that are refused in tests."""
BETA = re.compile(r"[a-z0-9-]+-\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Options:
    """The options of the endpoint."""

    scenario: Scenario
    key: bytes
    factor: float = 1.3
    needs_key: bool = True


class Service:
    """Answers requests; safe to use from several threads."""

    def __init__(self, options: Options) -> None:
        self._needs_key = options.needs_key
        self._binder = Binder(options.key)
        self._meter = Meter(options.factor, self._thinking_tokens)
        self._writer = Writer(self._binder, self._meter)
        self._stage = Player(options.scenario)
        self._cache = PromptCache()
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
                status, message = KEYS[key]
                raise scripted_error(status, message)
        if not headers.get("anthropic-version"):
            raise ApiError("anthropic-version: header is required")
        named = headers.get("anthropic-beta", "").split(",")
        betas = frozenset(name.strip() for name in named if name.strip())
        if unknown := sorted(name for name in betas if not BETA.fullmatch(name)):
            raise ApiError(f"Unexpected value(s) `{unknown[0]}` for the `anthropic-beta` header.")
        return betas

    def count(self, raw: bytes, betas: frozenset[str]) -> JsonObject:
        """Return the reply to a `count_tokens` request."""
        conversation, _ = self._read(raw, betas, CountRequest)
        return {"input_tokens": prompt(conversation, self._meter).tokens}

    def answer(self, raw: bytes, betas: frozenset[str]) -> Reply:
        """Return the reply to a request; advance the scenario unless the request is refused."""
        request, can = self._read(raw, betas, MessageRequest)
        drops = (request.thinking.get("block_binding") or {}).get("prefix_mismatch_behavior")
        checked = self._binder.check(
            request, is_bound=can.model.binding, drops=drops == "drop_block"
        )
        request = request.without(frozenset(checked.dropped))
        played = self._stage.find(request)
        check_end(request, is_paused=self._stage.is_paused(played, request))
        cached_prompt = prompt(request, self._meter)
        if cached_prompt.tokens > can.model.window:
            raise ApiError(
                f"prompt is too long: {cached_prompt.tokens} tokens > {can.model.window} maximum"
            )
        check_expectation(self._stage.peek(played).entry, request.body)
        step = self._stage.next(played)
        entry = step.entry
        if entry.status is not None:
            raise scripted_error(entry.status, entry.message, entry.retry_after, entry.retry_at)
        reply = self._writer.reply(step, request, checked)
        self._stage.remember(played, reply.blocks, reply.stop_reason)
        with self._lock:
            share = self._cache.use(cached_prompt, can.model.least_cacheable)
        reply.usage = {**share.as_usage(), "service_tier": "standard"}
        self._add_extras(reply, request, cached_prompt, checked, betas)
        return reply

    def _read(
        self, raw: bytes, betas: frozenset[str], shape: type[CountRequest]
    ) -> tuple[ParsedRequest, Capabilities]:
        body = parse_body(raw)
        check_shape(body, shape)
        check_betas(body, betas)
        can = capabilities(body["model"])
        parsed_request = conversation(body)
        check_rules(parsed_request, can)
        return parsed_request, can

    def _thinking_tokens(self, block: JsonObject) -> int | None:
        seal = self._binder.seal(block)
        return None if seal is None else seal.tokens

    def _add_extras(
        self,
        reply: Reply,
        asked: ParsedRequest,
        given: CachedPrompt,
        checked: Checked,
        betas: frozenset[str],
    ) -> None:
        """Add diagnostics and input transformations to a reply, if the request asks for them."""
        with self._lock:
            before = (asked.body.get("diagnostics") or {}).get("previous_message_id")
            if asked.body.get("diagnostics") is not None:
                reason = miss_reason(self._prompts.get(before), given) if before else None
                reply.extra["diagnostics"] = reason and {"cache_miss_reason": reason}
            self._prompts[reply.id] = given
            while len(self._prompts) > REMEMBERED:
                self._prompts.popitem(last=False)
        if BETAS["block_binding"] in betas:
            reply.extra["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}
                for path in checked.dropped
            ]


def unstreamable(reply: Reply) -> ApiError | None:
    """Return the error for a streaming fault in a reply that is not streamed; None without one."""
    if reply.entry.error_event is not None:
        return scripted_error(status_of(reply.entry.error_event), reply.entry.message)
    if reply.entry.cut is not None or reply.entry.malformed:
        return scripted_error(500, None)
    return None


def parse_body(raw: bytes) -> Any:
    """Parse a body; raise if it is not a JSON object, or if UTF-8 cannot encode its texts."""
    try:
        body = json.loads(raw, parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise ApiError(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise ApiError("Input should be an object")
    return body


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
