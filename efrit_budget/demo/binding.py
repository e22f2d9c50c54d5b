"""Sign thinking blocks over everything before them, and check the signatures.

A signature holds its block's id, the id of the thinking block before it, a digest of everything
before it but thinking (tools, system, messages; cache marks left out), and a digest of its own
text. So thinking may be removed from the start of the history: the first thinking block that
remains may have followed any other. Each later block must follow the block that it followed when
it was signed, so that none can be removed from the middle.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from efrit_budget.demo.conversation import THINKING, ParsedRequest, canonical, plain
from efrit_budget.demo.refusals import ApiError
from efrit_budget.errors import JsonObject

MAC_BYTES = 16
MOVED = (
    "Invalid signature in thinking block. The block is bound to a different conversation. Thinking "
    "blocks must be sent back behind the same tools, system prompt and messages that they were "
    "made behind; remove the block, and all later ones, when any of these changed."
)


@dataclass(frozen=True)
class Seal:
    """The content of a signature; `past` and `text` are digests."""

    id: str
    previous: str | None
    past: str
    text: str
    tokens: int
    """The tokens of the whole thinking, even if the block has no text."""


class Past:
    """A growing digest of everything before a block except thinking."""

    def __init__(self, conversation: ParsedRequest) -> None:
        self._hash = hashlib.sha256()
        self.role = ""
        for part in (conversation.tools, conversation.system):
            self._hash.update(canonical([plain(one) for one in part]))

    def enter(self, role: str) -> None:
        """Add the beginning of a message, unless it continues a turn of the same role."""
        if role == "system" or role != self.role:
            self._hash.update(f"\n{role}\n".encode())
        self.role = role

    def add(self, block: JsonObject) -> None:
        """Add a block that is not thinking."""
        self._hash.update(canonical(plain(block)))

    def digest(self) -> str:
        """Return the digest so far."""
        return self._hash.hexdigest()


@dataclass(frozen=True)
class Checked:
    """The past and the block that the next thinking block is bound to, and the dropped blocks."""

    past: Past
    previous: str | None
    dropped: tuple[str, ...] = ()


class Binder:
    """Signs thinking blocks and verifies its own signatures."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, past: str, previous: str | None, thinking: str, tokens: int) -> str:
        """Return a signature that binds thinking to `past` and to the block `previous`."""
        seal = Seal(secrets.token_hex(6), previous, past, _digest(thinking), tokens)
        payload = canonical(asdict(seal))
        return base64.b64encode(self._mac(payload) + payload).decode()

    def seal(self, block: JsonObject) -> Seal | None:
        """Decode a block's signature; return None if it is not ours or belongs to another text."""
        try:
            raw = base64.b64decode(block.get("signature", ""), validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, payload = raw[:MAC_BYTES], raw[MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)):
            return None
        seal = Seal(**json.loads(payload))
        return seal if seal.text == _digest(block["thinking"]) else None

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, "sha256")[:MAC_BYTES]

    def check(self, conversation: ParsedRequest, *, is_bound: bool, drops: bool) -> Checked:
        """Check all thinking blocks; raise at the first invalid one, or drop those if `drops`."""
        past, previous, dropped = Past(conversation), None, list[str]()
        for turn in conversation.turns:
            past.enter(turn.role)
            for placed in turn.blocks:
                if placed.type not in THINKING:
                    past.add(placed.block)
                    continue
                seal = self.seal(placed.block)
                if seal is None and not (is_bound and drops):
                    raise ApiError(f"{placed.path}: Invalid `signature` in `{placed.type}` block")
                is_first = previous is None and not dropped
                follows = seal is not None and (is_first or seal.previous == previous)
                if seal is not None and (not is_bound or (follows and seal.past == past.digest())):
                    previous = seal.id
                elif drops:
                    dropped.append(placed.path)
                else:
                    raise ApiError(f"{placed.path}: {MOVED}")
        return Checked(past, previous, tuple(dropped))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def kept_key(file: Path | None) -> bytes:
    """Return the key in a file, created if it is missing; without a file, a temporary key."""
    if file is None:
        return secrets.token_bytes(32)
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(secrets.token_bytes(32))
    return file.read_bytes()
