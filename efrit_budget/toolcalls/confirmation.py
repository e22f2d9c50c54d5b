"""Questions to the person before a tool call runs."""

import hmac
import secrets

from efrit_budget.conversation.tool_call import ToolCall
from efrit_budget.errors import JsonObject
from efrit_budget.tools.base import Outcome


class Confirmations:
    """Gives each question an id that only this process can make, so that no consent is forged."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)

    def confirms(self, call: ToolCall, confirm_id: str) -> bool:
        """Return whether `confirm_id` is that of the question that was asked for this call."""
        return hmac.compare_digest(confirm_id.encode(), self._confirm_id(call).encode())

    def envelope(self, call: ToolCall, question: Outcome, *, with_data: bool) -> JsonObject:
        """Return the envelope that asks the person the question; it is not stored."""
        return {
            "status": str(question.status),
            "text": question.text,
            **({"data": question.data} if with_data else {}),
            "tokens": 0,
            "handle": None,
            "confirm": {"id": self._confirm_id(call), "question": question.message},
        }

    def _confirm_id(self, call: ToolCall) -> str:
        identity = "\0".join(
            (call.session_id, call.tool_use_id, call.tool, call.canonical_arguments)
        )
        return hmac.new(self._key, identity.encode(), "sha256").hexdigest()[:16]
