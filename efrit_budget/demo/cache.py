"""Simulate the prompt cache by comparing prefixes."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from efrit_budget.demo.conversation import ParsedRequest, canonical, plain
from efrit_budget.demo.usage import Meter
from efrit_budget.errors import JsonObject

SECONDS = {"5m": 300.0, "1h": 3600.0}
LOOKBACK = 20
"""The number of blocks before a mark that are looked up if the prefix up to it is not cached."""
LEAST_AUTOMATIC, STEP = 1_024, 128
"""The tokens that a cache without marks reads at least, and the steps in which it reads."""
CHANGES_MESSAGES = ("thinking", "tool_choice")
"""Parameters whose change makes the cache of the messages useless, not that of the system text."""


@dataclass(frozen=True)
class Unit:
    """A block of the prompt: its part of the prompt, and digest and tokens up to its end."""

    part: str
    prefix: str
    tokens: int
    """The tokens of the prompt up to the end of this block."""
    mark: str | None = None


@dataclass(frozen=True)
class CachedPrompt:
    """A prompt as the cache compares it."""

    model: str
    parameters: str
    units: list[Unit]

    @property
    def tokens(self) -> int:
        """All tokens of the prompt."""
        return self.units[-1].tokens if self.units else 0

    def prefix_of(self, part: str) -> str | None:
        """Return the digest up to the end of tools, system or messages; None for an empty part."""
        return next((unit.prefix for unit in reversed(self.units) if unit.part == part), None)


@dataclass(frozen=True)
class Share:
    """The tokens of a prompt that were read from the cache, written to it, and neither."""

    read: int = 0
    written: dict[str, int] = field(default_factory=lambda: {"5m": 0, "1h": 0})
    fresh: int = 0


def prompt(conversation: ParsedRequest, meter: Meter) -> CachedPrompt:
    """Return the prompt of a request, cut into units with their cache marks."""
    body = conversation.body
    parameters = canonical({name: body.get(name) for name in CHANGES_MESSAGES})
    running, tokens, part = hashlib.sha256(conversation.model.encode()), 0, ""
    units: list[Unit] = []
    for name, content, block, cost in _pieces(conversation, meter):
        if name != part and name == "messages":
            running.update(parameters)
        part = name
        running.update(content)
        tokens += cost
        mark = block.get("cache_control")
        units.append(
            Unit(name, running.hexdigest(), tokens, mark.get("ttl", "5m") if mark else None)
        )
    if top := body.get("cache_control"):
        units[-1] = replace(units[-1], mark=units[-1].mark or top.get("ttl", "5m"))
    return CachedPrompt(conversation.model, parameters.decode(), units)


def _pieces(
    conversation: ParsedRequest, meter: Meter
) -> Iterator[tuple[str, bytes, JsonObject, int]]:
    """Yield the prompt's blocks in cache order: part of the prompt, bytes, block and tokens."""
    for name, blocks in (("tools", conversation.tools), ("system", conversation.system)):
        for block in blocks:
            yield name, canonical([name, plain(block)]), block, meter.block(block)
    for turn in conversation.turns:
        for placed in turn.blocks:
            content = canonical([turn.role, plain(placed.block)])
            cost = 0 if turn.is_cleared else meter.block(placed.block)
            yield "messages", content, placed.block, cost


class PromptCache:
    """The cached prefixes and when each expires."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, str]] = {}

    def use(self, given: CachedPrompt, least: int) -> Share:
        """Read the longest cached prefix, write marked ones of `least` tokens; return the share."""
        now = time.monotonic()
        marked = [at for at, unit in enumerate(given.units) if unit.mark is not None]
        marked = [at for at in marked if given.units[at].tokens >= least]
        hit = max((self._hit(given.units, at, now) for at in marked), default=-1)
        done = read = given.units[hit].tokens if hit >= 0 else 0
        written = {"5m": 0, "1h": 0}
        for at in marked:
            unit = given.units[at]
            ttl = unit.mark or "5m"
            written[ttl] += max(0, unit.tokens - done)
            done = max(done, unit.tokens)
            self._kept[unit.prefix] = (now + SECONDS[ttl], ttl)
        return Share(read, written, given.tokens - done)

    def use_automatic(self, given: CachedPrompt) -> Share:
        """Read the longest cached prefix, in whole steps, and write every prefix; return the share.

        So do the caches of servers that know no marks.
        """
        now = time.monotonic()
        kept = (unit.tokens for unit in reversed(given.units) if self._is_kept(unit, now))
        read = next(kept, 0) // STEP * STEP
        for unit in given.units:
            self._kept[unit.prefix] = (now + SECONDS["5m"], "5m")
        read = read if read >= LEAST_AUTOMATIC else 0
        return Share(read=read, fresh=given.tokens - read)

    def _is_kept(self, unit: Unit, now: float) -> bool:
        return self._kept.get(unit.prefix, (0.0, "5m"))[0] > now

    def _hit(self, units: list[Unit], mark: int, now: float) -> int:
        """Return the index of the last cached unit up to a mark, or -1; renew its expiry."""
        for at in range(mark, max(-1, mark - LOOKBACK - 1), -1):
            if self._is_kept(units[at], now):
                ttl = self._kept[units[at].prefix][1]
                self._kept[units[at].prefix] = (now + SECONDS[ttl], ttl)
                return at
        return -1


def miss_reason(before: CachedPrompt | None, now: CachedPrompt) -> JsonObject | None:
    """Return the API's reason why an earlier prompt could not be reused, or None if it could."""
    if before is None:
        return {"type": "previous_message_not_found"}
    ours = {unit.prefix for unit in now.units}
    if before.model != now.model:
        kind = "model_changed"
    elif before.prefix_of("tools") != now.prefix_of("tools"):
        kind = "tools_changed"
    elif before.prefix_of("system") != now.prefix_of("system"):
        kind = "system_changed"
    elif before.parameters != now.parameters:
        return {"type": "unavailable"}
    elif before.units[-1].prefix not in ours:
        kind = "messages_changed"
    else:
        return None
    common = max((unit.tokens for unit in before.units if unit.prefix in ours), default=0)
    return {"type": kind, "cache_missed_input_tokens": before.tokens - common}
