"""A server with the methods of the examples in the JSON-RPC 2.0 specification."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pydantic import RootModel

from efrit_budget.errors import Json
from efrit_budget.wire.dispatch import Dispatcher
from efrit_budget.wire.method import Call, Method, NoParams, Params
from efrit_budget.wire.server import Application, Server
from efrit_budget.wire.stdio import take_standard_streams


class Numbers(RootModel[list[int]]):
    """Numbers by position."""


class Difference(Params):
    """The params of `subtract`, by position or by name."""

    minuend: int
    subtrahend: int


def _nothing(_params: object, _call: Call) -> Json:
    return None


METHODS = [
    Method("subtract", Difference, lambda params, _: params.minuend - params.subtrahend),
    Method("sum", Numbers, lambda params, _: sum(params.root)),
    Method("update", Numbers, _nothing),
    Method("notify_hello", Numbers, _nothing),
    Method("notify_sum", Numbers, _nothing),
    Method("get_data", NoParams, lambda _params, _: ["hello", 5]),
]


def main(on_exit: Callable[[], None] = lambda: None) -> int:
    """Serve until the input ends."""
    methods = {method.name: method for method in METHODS}
    return Server(lambda: Application(Dispatcher(methods), 2**20), take_standard_streams()).run(
        on_exit
    )


if __name__ == "__main__":
    sys.exit(main())
