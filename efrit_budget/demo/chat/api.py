"""The Chat Completions API."""

from collections.abc import Iterator, Mapping

from efrit_budget.demo.api import Api, Asked
from efrit_budget.demo.body import parse_body
from efrit_budget.demo.chat.complaints import check_shape
from efrit_budget.demo.chat.errors import MESSAGES, QUOTA, error_body
from efrit_budget.demo.chat.reply import completion, usage
from efrit_budget.demo.chat.request import parse_request
from efrit_budget.demo.chat.rules import check_rules
from efrit_budget.demo.chat.stream import ChatStream
from efrit_budget.demo.chat.strict import ChatRules
from efrit_budget.demo.models import Catalog
from efrit_budget.demo.refusals import ApiError
from efrit_budget.demo.replies import Ids, Reply
from efrit_budget.demo.stream import Event
from efrit_budget.errors import JsonObject

NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
NO_CREDIT = "You exceeded your current quota, please check your plan and billing details."
LONG_IDS, SHORT_IDS = Ids("chatcmpl-", "call_", 24), Ids("chatcmpl-", "", 9)
KEYS: Mapping[str, tuple[int, str, str]] = {
    "bad": (401, "Incorrect API key provided: bad.", "invalid_api_key"),
    "nocredit": (429, NO_CREDIT, QUOTA),
    "forbidden": (403, MESSAGES[403], "permission_denied"),
}
"""The status, message and code for API keys that are refused in tests."""


class ChatApi(Api):
    """Reads and writes the form of Chat Completions."""

    id_header = "x-request-id"
    error_messages = MESSAGES
    has_marks = False

    def __init__(
        self, catalog: Catalog, rules: ChatRules, *, reasoning: str, needs_key: bool
    ) -> None:
        self._catalog = catalog
        self._rules = rules
        self._reasoning = reasoning
        self._needs_key = needs_key
        self.ids = SHORT_IDS if rules.has_short_ids else LONG_IDS

    def check_headers(self, headers: Mapping[str, str]) -> frozenset[str]:
        """Return no betas; raise if the key is missing or refused."""
        key = headers.get("authorization", "").removeprefix("Bearer ")
        if self._needs_key:
            if not key:
                raise ApiError(NO_KEY, status=401)
            if key in KEYS:
                status, message, code = KEYS[key]
                raise ApiError(message, status=status, kind=code)
        return frozenset()

    def read(self, raw: bytes, betas: frozenset[str]) -> Asked:
        """Return the request of a body."""
        body = parse_body(raw)
        check_shape(body)
        self._rules.check_additions(body["messages"])
        model = self._catalog.find(body["model"])
        if model is None:
            raise ApiError(
                f"The model `{body['model']}` does not exist or you do not have access to it.",
                status=404,
                param="model",
                kind="model_not_found",
            )
        check_rules(body, model)
        self._rules.check(body)
        return Asked(parse_request(body), model, betas=betas)

    def check_end(self, asked: Asked, *, is_paused: bool) -> None:
        """Do nothing: a reply may follow any message."""

    def too_long(self, tokens: int, asked: Asked) -> ApiError:
        """Return the error for a prompt of so many tokens, more than the window has room for."""
        window = asked.model.window
        problem = f"your messages resulted in {tokens} tokens"
        if tokens <= window:
            problem = (
                f"you requested {asked.request.max_tokens} output tokens and your prompt contains "
                f"at least {tokens} input tokens"
            )
        return ApiError(
            f"This model's maximum context length is {window} tokens. However, {problem}. Please "
            "reduce the length of the messages.",
            param="messages",
            kind="context_length_exceeded",
        )

    def complete(self, reply: Reply, asked: Asked) -> None:
        """Leave the usage out of a stream, unless it is asked for, or sent with the end."""
        body = asked.request.body
        options = body.get("stream_options") or {}
        reply.usage = reply.entry.usage or "end"
        if body.get("stream") and not options.get("include_usage") and reply.usage != "finish":
            reply.usage = "none"
        self._rules.complete(reply)

    def body(self, reply: Reply) -> JsonObject:
        """Return the whole reply."""
        return completion(reply, self._reasoning)

    def events(self, reply: Reply) -> Iterator[Event]:
        """Yield the events of the reply as a stream; one that `is_last` ends it early."""
        return ChatStream(reply, self._reasoning).events()

    def usage(self, reply: Reply) -> JsonObject:
        """Return the tokens of the prompt and of the reply."""
        return usage(reply)

    def error_body(self, error: ApiError) -> JsonObject:
        """Return an error as Chat Completions writes it."""
        return error_body(error)
