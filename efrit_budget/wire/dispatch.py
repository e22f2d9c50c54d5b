"""Dispatch a parsed request through jsonrpcserver.

jsonrpcserver answers a whole batch at once, loses the id of an invalid request, and puts an
exception's text into `data`. So each request of a batch is dispatched alone and checked before,
and a method's exceptions are turned into errors before the library sees them.
"""

from collections.abc import Callable, Mapping

from jsonrpcserver import Error, Result, Success
from jsonrpcserver.main import dispatch_to_serializable

from efrit_budget.errors import EfritError, Json, JsonObject, MethodNotFoundError
from efrit_budget.wire.call import Call, Lane
from efrit_budget.wire.method import Method
from efrit_budget.wire.request import Request, error_reply, unexpected


class Dispatcher:
    """Finds a request's method by its name, and runs it."""

    def __init__(self, methods: Mapping[str, Method]) -> None:
        self._methods = methods
        self._handlers = {name: _handler(method) for name, method in methods.items()}

    def lane(self, request: Request) -> Lane:
        """Return the lane of a request's method, `ORDERED` for an unknown method."""
        method = self._methods.get(request.method)
        return Lane.ORDERED if method is None else method.lane

    def arrive(self, request: Request, call: Call) -> None:
        """Call the `arrive` function of the request's method, if it has one."""
        method = self._methods.get(request.method)
        if method is not None and method.arrive is not None:
            method.arrive(request.member.get("params", {}), call)

    def reply(self, request: Request, call: Call) -> JsonObject | None:
        """Run a request and return its reply, or None for a notification."""
        if request.method not in self._handlers:
            unknown = MethodNotFoundError(f"there is no method {request.method[:100]}")
            return None if request.is_notification else error_reply(unknown, request.id)
        reply = dispatch_to_serializable(
            request.member,
            self._handlers,
            context=call,
            deserializer=dict,  # the member is parsed and checked already
            validator=bool,
        )
        return reply if isinstance(reply, dict) else None


def _handler(method: Method) -> Callable[..., Result]:
    def handle(call: Call, /, *positional: Json, **named: Json) -> Result:
        try:
            if not call.cancellation.by_person:
                call.cancellation.check()
            return Success(method(named or list(positional), call))
        except EfritError as error:
            found = error
        except BaseException as error:  # noqa: BLE001  a defect becomes a reply here
            found = unexpected(error, method.name)
        return Error(**found.on_the_wire())

    return handle
