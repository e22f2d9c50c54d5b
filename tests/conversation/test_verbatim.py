"""The model's own text survives a client whose JSON is not exact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.errors import InvalidParamsError
from tests.conversation.client import Client, text, tool_use

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abé", max_size=3), inner),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client for many sessions."""
    made = Client(tmp_path_factory.mktemp("verbatim"))
    yield made
    made.close()


def begun(client: Client, said: str | None = None) -> dict[str, Any]:
    """Begin a turn and return the reply as text."""
    given = {"model": client.model, "system": "Work.", "as_text": True}
    answer: dict[str, Any] = client.call("turn/begin", **given, user_message=said)
    return answer


@given(st.dictionaries(st.text("abé", max_size=3), VALUES, max_size=3))
def test_a_tools_input_comes_back_as_it_was_written(shared: Client, value: dict[str, Any]) -> None:
    client = shared.open_session()
    first = begun(client, "Go on.")
    block = json.dumps(tool_use("a", "eval_sexp") | {"input": value}, ensure_ascii=False)
    ended = client.call(
        "turn/end", turn_id=first["turn_id"], content_json=f"[{block}]", as_text=True
    )
    (message,) = ended["append"]["messages"]
    assert json.loads(message)["content"][0]["input"] == value
    envelope = client.call(
        "tools/record",
        name="eval_sexp",
        arguments_json=json.dumps(value),
        tool_use_id="a",
        text="done",
    )
    assert envelope["status"] == "success"
    (entry,) = client.entries()
    assert entry["arguments"] == value
    begun(client)
    held = client.call("session/messages", as_text=True)["messages"]
    assert message in held
    assert json.loads(held[1])["content"][0]["input"] == value


def test_empty_objects_and_lists_null_and_false_keep_their_own_texts(shared: Client) -> None:
    client = shared.open_session()
    first = begun(client, "Go on.")
    written = '{"a":{},"b":[],"c":null,"d":false,"e":12345678901234567890123,"f":1.5}'
    block = f'{{"type":"tool_use","id":"a","name":"eval_sexp","input":{written}}}'
    ended = client.call(
        "turn/end", turn_id=first["turn_id"], content_json=f"[{block}]", as_text=True
    )
    assert written in ended["append"]["messages"][0]


def test_what_goes_to_the_model_is_text_and_the_rest_of_the_answer_is_not(shared: Client) -> None:
    client = shared.open_session()
    answer = begun(client, "größe")
    assert json.loads(answer["system"])[0]["type"] == "text"
    assert {tool["name"] for tool in json.loads(answer["tools"])} >= {"file_info"}
    (message,) = (answer["rewrite"] or answer["append"])["messages"]
    assert message == '{"role":"user","content":[{"type":"text","text":"größe"}]}'
    assert answer["budget"]["total"] > 0


@pytest.mark.parametrize("written", ["", "{", "{}", "[1]", '"text"', "[NaN]", "nul"])
def test_a_reply_that_is_no_list_of_blocks_is_refused_by_name(shared: Client, written: str) -> None:
    client = shared.open_session()
    first = begun(client, "Go on.")
    with pytest.raises(InvalidParamsError, match="content_json"):
        client.call("turn/end", turn_id=first["turn_id"], content_json=written)
    client.call("turn/end", turn_id=first["turn_id"], content=[text("Done.")])


@pytest.mark.parametrize(
    "written",
    [
        '{"path":"a.txt","content":"abc',
        '["a"]',
        '"a"',
        "null",
        "{} {}",
        '{"a":NaN}',
        '"\\ud800"',
        '{"a":' * 300 + "1" + "}" * 300,
        '{"command":"echo safe","timeout":120,"command":"touch PWNED"}',
        '{"edits":[{"path":"a","path":"b"}]}',
        '{"a":{"b":[{"c":1,"\\u0063":1}]}}',
        '{"timeout":99999999999999999999}',
        '{"timeout":-9223372036854775809}',
        '{"a":1e999}',
    ],
)
def test_an_input_that_is_no_object_stands_as_an_empty_one_and_is_named(
    shared: Client, written: str
) -> None:
    client = shared.open_session()
    first = begun(client, "Go on.")
    whole = '{"b":9223372036854775807,"c":{}}'
    blocks = [
        {"type": "text", "text": "I will."},
        {"type": "tool_use", "id": "a", "name": "eval_sexp", "input_json": written},
        {"type": "tool_use", "id": "b", "name": "eval_sexp", "input_json": whole},
    ]
    ended = client.call(
        "turn/end",
        turn_id=first["turn_id"],
        content_json=json.dumps(blocks),
        usage={"input_tokens": 900, "output_tokens": 20},
        stop_reason="max_tokens",
        as_text=True,
    )
    ((unreadable),) = ended["unreadable"]
    assert unreadable["tool_use_id"] == "a"
    assert "its input was cut off or cannot be read" in unreadable["problem"]
    assert ended["inputs"] == [
        {"tool_use_id": "a", "input_json": "{}"},
        {"tool_use_id": "b", "input_json": whole},
    ]
    assert written[:100] in unreadable["problem"]
    assert len(unreadable["problem"]) < 400
    (message,) = ended["append"]["messages"]
    assert [block.get("input") for block in json.loads(message)["content"]] == [
        None,
        {},
        json.loads(whole),
    ]
    assert f'"input":{whole}' in message
    assert client.call("session/status")["usage"]["output_tokens"] == 20


def ended_with_a_command(client: Client, written: str) -> dict[str, Any]:
    """End a turn whose reply runs a command, with an input as it is written."""
    first = begun(client, "Go on.")
    use = {"type": "tool_use", "id": "a", "name": "run_command", "input_json": written}
    ended: dict[str, Any] = client.call("turn/end", turn_id=first["turn_id"], content=[use])
    return ended


def test_an_input_that_was_read_is_given_back_in_its_one_form(shared: Client) -> None:
    written = '{ "command" : "\\u0065cho\\u0000\u2028" , "timeout":1e2}'
    ended = ended_with_a_command(shared.open_session(), written)
    (given,) = ended["inputs"]
    assert given["input_json"] == '{"command":"echo\\u0000\u2028","timeout":100.0}'
    (block,) = ended["append"]["messages"][0]["content"]
    assert block["input"] == json.loads(given["input_json"])


def test_a_problem_names_the_key_that_stands_twice(shared: Client) -> None:
    ended = ended_with_a_command(
        shared.open_session(), '{"command":"echo safe","command":"touch PWNED"}'
    )
    (unreadable,) = ended["unreadable"]
    assert 'the key "command" stands twice in one object' in unreadable["problem"]


def test_arguments_that_are_no_object_are_refused_by_name(shared: Client) -> None:
    client = shared.open_session()
    with pytest.raises(InvalidParamsError, match="arguments_json"):
        client.call("tools/call", name="file_info", arguments_json="[1]", tool_use_id="a")


@pytest.mark.parametrize("empty", [None, []])
def test_empty_arguments_may_be_null_or_an_empty_list(shared: Client, empty: Any) -> None:
    """Lisp writes an empty object as null, Lua as a list."""
    client = shared.open_session()
    first = begun(client, "Go on.")
    block = {"type": "tool_use", "id": "use", "name": "recall_result", "input": empty}
    ended = client.call("turn/end", turn_id=first["turn_id"], content=[block])
    assert ended["append"]["messages"][0]["content"][0]["input"] == {}
    called = client.call("tools/call", name="recall_result", arguments=empty, tool_use_id="use")
    assert called["status"] == "success"
    recorded = client.call(
        "tools/record", name="mine", arguments=empty, data=empty, text="Done.", tool_use_id="b"
    )
    assert recorded["status"] == "success"
    written = json.dumps(empty)
    named = {"name": "recall_result", "arguments_json": written, "tool_use_id": "c"}
    assert client.call("tools/call", **named)["status"] == "success"


TODO_SCHEMA = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"enum": ["pending", "done"]},
                },
                "required": ["content", "status"],
            },
        },
        "note": {"type": "string"},
    },
    "required": ["todos"],
}


def registering(client: Client, schema: dict[str, Any]) -> dict[str, Any]:
    """Register `todo_write` with this schema, begin a turn and return the reply."""
    tool = {"name": "todo_write", "description": "List.", "input_schema": schema}
    client.call("tools/register", tools=[tool])
    return begun(client, "Go on.")


def misfits(client: Client, schema: dict[str, Any], *inputs: Any) -> list[str]:
    """Return the problem of each of these inputs of a tool."""
    first = registering(client, schema)
    uses = [tool_use(str(at), "todo_write") | {"input": one} for at, one in enumerate(inputs)]
    ended = client.call("turn/end", turn_id=first["turn_id"], content=uses)
    return [f"{found['tool_use_id']} {found['problem']}" for found in ended["misfits"]]


def test_inputs_that_do_not_fit_a_tool_of_the_clients_are_named(shared: Client) -> None:
    good = {"content": "a", "status": "done"}
    found = misfits(
        shared.open_session(),
        TODO_SCHEMA,
        {"todos": [good, {"content": "a", "status": "completed"}]},
        {"todos": ["just a text"]},
        {"todos": [{"status": "done"}], "note": 1},
        {},
        {"todos": [good], "notes": "x" * 1_000},
        {"todos": [good] * 3, "x" * 1_000: 1},
        {"todos": [good], "note": None, "max_tokens": 500},
    )
    assert found[:4] == [
        "0 todos.1.status: must be one of pending, done",
        "1 todos.0: must be of type object",
        "2 note: must be of type string; todos.0: content is missing",
        "3 todos is missing",
    ]
    assert found[4] == "4 there is no argument notes; there are: note, todos"
    assert found[5].startswith("5 there is no argument xxx")
    assert len(found[5]) < 300
    assert len(found) == 6


def test_an_input_that_cannot_be_read_is_no_misfit_as_well(shared: Client) -> None:
    client = shared.open_session()
    first = registering(client, TODO_SCHEMA)
    block = {"type": "tool_use", "id": "a", "name": "todo_write", "input_json": '{"todos": ['}
    ended = client.call("turn/end", turn_id=first["turn_id"], content_json=json.dumps([block]))
    assert [found["tool_use_id"] for found in ended["unreadable"]] == ["a"]
    assert ended["misfits"] == []


def test_a_schema_that_is_none_is_refused_when_it_is_registered(shared: Client) -> None:
    broken = {"type": "object", "properties": {"a": {"type": "strnig"}}}
    with pytest.raises(InvalidParamsError, match=r"tools.0.input_schema.*properties.a.type"):
        registering(shared.open_session(), broken)


def test_a_schema_that_points_elsewhere_is_followed_nowhere(shared: Client) -> None:
    """The reply is accepted although the schema cannot be checked."""
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}}
    assert misfits(shared.open_session(), schema, {"a": 1}) == []


def test_the_texts_are_those_of_the_values(shared: Client, tmp_path: Path) -> None:
    client = shared.open_session()
    first = begun(client, "Go on.")
    client.call("turn/end", turn_id=first["turn_id"], content=[text("Done.")])
    held = client.call("session/messages", as_text=True)["messages"]
    plain = client.call("session/messages")["messages"]
    assert [json.loads(message) for message in held] == plain
