"""What some servers of Chat Completions want back with a tool call, and their other rules."""

from collections.abc import Iterator

from efrit_budget.demo.binding import Binder
from efrit_budget.demo.chat.dialects import CHECKS, unknown
from efrit_budget.demo.chat.request import REASONING
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.replies import Reply
from efrit_budget.errors import JsonObject

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""The signature that Gemini takes for tool calls that another model made."""


class ChatRules:
    """The rules that are switched on; safe to use from several threads."""

    def __init__(self, strict: frozenset[str], reasoning: str, binder: Binder) -> None:
        self._checks = [check for name, check in CHECKS.items() if name in strict]
        self.has_short_ids = "short-ids" in strict
        self._has_signatures = "thought-signatures" in strict
        self._wants_reasoning = "reasoning-back" in strict
        self._reasoning = reasoning
        self._binder = binder
        self._reasoned: set[str] = set()
        """The ids of the tool calls of replies with thinking."""

    def check(self, body: JsonObject) -> None:
        """Raise if a request breaks a rule."""
        messages = body["messages"]
        for check in self._checks:
            check(body)
        if self._has_signatures:
            self._check_signatures(messages)
        if self._wants_reasoning:
            self._check_reasoning(messages)

    def check_additions(self, messages: list[JsonObject]) -> None:
        """Raise if a message has an addition of vendors that this endpoint does not make."""
        for index, message in enumerate(messages):
            for name in REASONING:
                if name in message and name != self._reasoning:
                    raise unknown(f"messages[{index}].{name}")
            for number, call in enumerate(message.get("tool_calls") or []):
                if "extra_content" in call and not self._has_signatures:
                    raise unknown(f"messages[{index}].tool_calls[{number}].extra_content")

    def complete(self, reply: Reply) -> None:
        """Sign the first tool call of a reply, and remember the calls behind thinking."""
        if reply.thinking_tokens:
            self._reasoned |= {str(reply.blocks[index].get("id")) for index in reply.inputs}
        if self._has_signatures and reply.inputs:
            name = reply.blocks[next(iter(reply.inputs))]["name"]
            signature = self._binder.sign("", None, name, 0)
            reply.extra = {"extra_content": {"google": {"thought_signature": signature}}}

    def _check_signatures(self, messages: list[JsonObject]) -> None:
        """Raise unless each step behind the last user message has its signature."""
        turn = list(_exchanges(messages))[-1]
        steps = [(index, one["tool_calls"][0]) for index, one in turn if one.get("tool_calls")]
        for index, call in steps:
            name, extra = call["function"]["name"], call.get("extra_content") or {"google": {}}
            signature = extra["google"].get("thought_signature")
            if signature is None:
                raise ApiError(
                    "Function call is missing a thought_signature in functionCall parts. This is "
                    "required for tools to work correctly, and missing thought_signature may lead "
                    f"to degraded model performance. Additional data, function call "
                    f"`default_api:{name}`, position {index + 1}."
                )
            sealed = {"thinking": name, "signature": signature}
            if signature != SKIP_SIGNATURE and self._binder.seal(sealed) is None:
                raise ApiError("Thought signature is not valid.")

    def _check_reasoning(self, messages: list[JsonObject]) -> None:
        """Raise unless the replies of each exchange with tool calls bring back their thinking.

        The field may be empty for a reply that had none.
        """
        for exchange in _exchanges(messages):
            if not any(message.get("tool_calls") for _, message in exchange):
                continue
            for index, message in exchange:
                if message["role"] == "assistant" and not self._is_back(message):
                    raise ApiError(
                        f"Missing `{self._reasoning}` field in the assistant message at message "
                        f"index {index}. The thinking must be passed back to the API."
                    )

    def _is_back(self, message: JsonObject) -> bool:
        sent = message.get(self._reasoning)
        ids = {call["id"] for call in message.get("tool_calls") or []}
        return sent is not None and (sent != "" or not ids & self._reasoned)


def _exchanges(messages: list[JsonObject]) -> Iterator[list[tuple[int, JsonObject]]]:
    """Yield the messages behind each user message, with their numbers."""
    exchange: list[tuple[int, JsonObject]] = []
    for index, message in enumerate(messages):
        if message["role"] == "user":
            yield exchange
            exchange = []
        exchange.append((index, message))
    yield exchange
