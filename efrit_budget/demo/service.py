"""Answer the body of a request, apart from HTTP and from the form of an API."""

import threading
from dataclasses import dataclass

from efrit_budget.demo.api import Api
from efrit_budget.demo.binding import Binder
from efrit_budget.demo.cache import PromptCache, prompt
from efrit_budget.demo.chat.api import ChatApi
from efrit_budget.demo.chat.request import REASONING
from efrit_budget.demo.chat.strict import ChatRules
from efrit_budget.demo.conversation import ParsedRequest
from efrit_budget.demo.faults import answer_error
from efrit_budget.demo.messages.api import MessagesApi
from efrit_budget.demo.models import Catalog
from efrit_budget.demo.play import Player
from efrit_budget.demo.replies import Reply, Writer, check_expectation
from efrit_budget.demo.scenario import Scenario
from efrit_budget.demo.strict import NO_USAGE, WHOLE_WINDOW, check_strict
from efrit_budget.demo.usage import Meter
from efrit_budget.errors import JsonObject


@dataclass(frozen=True)
class Options:
    """The options of the endpoint."""

    scenario: Scenario
    key: bytes
    factor: float = 1.3
    needs_key: bool = True
    reasoning: str = REASONING[0]
    """The field of Chat Completions in which thinking is sent."""
    models: tuple[str, ...] = ()
    """The names of models that are served beside those of the table."""
    window: int | None = None
    """The largest window of a model."""
    strict: frozenset[str] = frozenset()
    """The switches of `STRICT` that are on."""


class Service:
    """Answers requests; safe to use from several threads."""

    def __init__(self, options: Options) -> None:
        self._binder = Binder(options.key)
        self._meter = Meter(options.factor, self._thinking_tokens)
        self.catalog = Catalog(options.models, options.window)
        self.messages = MessagesApi(
            self._binder, self._meter, self.catalog, needs_key=options.needs_key
        )
        rules = ChatRules(options.strict, options.reasoning, self._binder)
        self.chat = ChatApi(
            self.catalog, rules, reasoning=options.reasoning, needs_key=options.needs_key
        )
        self._strict = options.strict
        self._stage = Player(options.scenario)
        self._cache = PromptCache()
        self._lock = threading.Lock()

    def answer(self, api: Api, raw: bytes, betas: frozenset[str]) -> Reply:
        """Return the reply to a request; advance the scenario unless the request is refused."""
        asked = api.read(raw, betas)
        request = asked.request
        check_strict(request, self._strict)
        played = self._stage.find(request)
        api.check_end(asked, is_paused=self._stage.is_paused(played, request))
        given = prompt(request, self._meter)
        if given.tokens + self._reserve(request) > asked.model.window:
            raise api.too_long(given.tokens, asked)
        check_expectation(self._stage.peek(played).entry, request.body)
        step = self._stage.next(played)
        if error := answer_error(step.entry, api.error_messages):
            raise error
        writer = Writer(self._meter, api.ids, asked.sign, asked.model)
        reply = writer.reply(step, request, given)
        self._stage.remember(played, reply)
        with self._lock:
            if api.has_marks:
                reply.share = self._cache.use(given, asked.model.least_cacheable)
            else:
                reply.share = self._cache.use_automatic(given)
        api.complete(reply, asked)
        if NO_USAGE in self._strict:
            reply.usage = "none"
        return reply

    def _reserve(self, request: ParsedRequest) -> int:
        """Return the tokens of the window that the prompt must leave free."""
        return (request.max_tokens or 0) if WHOLE_WINDOW in self._strict else 0

    def _thinking_tokens(self, block: JsonObject) -> int | None:
        seal = self._binder.seal(block)
        return None if seal is None else seal.tokens
