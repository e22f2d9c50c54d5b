"""The examples of the JSON-RPC 2.0 specification, reply for reply, over a real process."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sidecar import Sidecar

PARSE_ERROR = {"code": -32700, "message": "Parse error"}
INVALID_REQUEST = {"code": -32600, "message": "Invalid Request"}
METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found"}


def _result(result: Any, request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": result, "id": request_id}


def _error(error: dict[str, Any], request_id: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": error, "id": request_id}


BATCH = """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
    ]"""

EXAMPLES: dict[str, tuple[str, Any]] = {
    "positional parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        _result(19, 1),
    ),
    "positional parameters in the other order": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        _result(-19, 2),
    ),
    "named parameters": (
        (
            '{"jsonrpc": "2.0", "method": "subtract",'
            ' "params": {"subtrahend": 23, "minuend": 42}, "id": 3}'
        ),
        _result(19, 3),
    ),
    "named parameters in the other order": (
        (
            '{"jsonrpc": "2.0", "method": "subtract",'
            ' "params": {"minuend": 42, "subtrahend": 23}, "id": 4}'
        ),
        _result(19, 4),
    ),
    "a notification": ('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    "a notification to no method": ('{"jsonrpc": "2.0", "method": "foobar"}', None),
    "a method that does not exist": (
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        _error(METHOD_NOT_FOUND, "1"),
    ),
    "invalid JSON": (
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        _error(PARSE_ERROR),
    ),
    "an invalid request": (
        '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
        _error(INVALID_REQUEST),
    ),
    "a batch of invalid JSON": (
        """[
  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
  {"jsonrpc": "2.0", "method"
]""",
        _error(PARSE_ERROR),
    ),
    "an empty array": ("[]", _error(INVALID_REQUEST)),
    "an invalid batch that is not empty": ("[1]", [_error(INVALID_REQUEST)]),
    "an invalid batch": ("[1,2,3]", [_error(INVALID_REQUEST)] * 3),
    "a batch": (
        BATCH,
        [
            _result(7, "1"),
            _result(19, "2"),
            _error(INVALID_REQUEST),
            _error(METHOD_NOT_FOUND, "5"),
            _result(["hello", 5], "9"),
        ],
    ),
    "a batch of notifications": (
        """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]""",
        None,
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Sidecar]:
    command = [sys.executable, "-m", "tests.wire.specification_server"]
    root = Path(__file__).parents[2]
    with Sidecar(command=command, cwd=root) as running:
        yield running


def _as_specified(reply: Any) -> Any:
    """Return a reply without our additional `data`, its batch sorted."""
    if isinstance(reply, list):
        return sorted(map(_as_specified, reply), key=lambda member: json.dumps(member["id"]))
    if "error" in reply:
        reply["error"].pop("data", None)
    return reply


@pytest.mark.parametrize("framing", ["header", "line"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_reply_is_the_one_of_the_specification(
    server: Sidecar, name: str, framing: str
) -> None:
    text, expected = EXAMPLES[name]
    raw = text if framing == "header" else text.replace("\n", " ")
    server.send(raw.encode(), framing)
    server.send(b'{"jsonrpc":"2.0","method":"subtract","params":[9,9],"id":"end"}', framing)
    if expected is not None:
        reply = server.wait_for(lambda v: isinstance(v, list) or v.get("id", "end") != "end")
        assert _as_specified(reply.value) == _as_specified(expected)
        assert reply.framing == framing
    assert server.result("end") == 0


def test_the_examples_left_nothing_unanswered_and_nothing_answered_twice(server: Sidecar) -> None:
    server.send(b'{"jsonrpc":"2.0","method":"subtract","params":[9,9],"id":"last"}')
    assert server.next_message().value["id"] == "last"
