"""Errors on demand, and the rest of a stream that breaks."""

from __future__ import annotations

import http.client
import json
import time
from email.utils import parsedate_to_datetime

import anthropic
import pytest

from tests.demo.conftest import Play
from tests.demo.running import HEADERS, TOOL, Endpoint, assistant, request, text, user

AND_THEN = '\n[[reply]]\ntext = "Here you are."\n'


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (402, anthropic.PaymentRequiredError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.ContentTooLargeError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.OverloadedError),
    ],
)
def test_the_sdk_knows_each_error_and_the_same_request_then_gets_the_next_reply(
    play: Play, status: int, expected: type[anthropic.APIStatusError]
) -> None:
    client = play(f"[[reply]]\nstatus = {status}\n{AND_THEN}").client()
    with pytest.raises(expected) as caught:
        client.messages.create(**request())
    assert caught.value.status_code == status
    assert caught.value.request_id
    assert caught.value.api_message
    assert client.messages.create(**request()).content[0].to_dict()["text"] == "Here you are."


def test_the_sdk_retries_three_times_overloaded_as_retry_after_says(play: Play) -> None:
    overloaded = "[[reply]]\nstatus = 529\nretry_after = 0.01\nrepeat = 3\n"
    client = play(overloaded + AND_THEN).client(max_retries=3)
    assert client.messages.create(**request()).content[0].to_dict()["text"] == "Here you are."


def test_an_error_says_when_to_come_again(play: Play) -> None:
    answer = play("[[reply]]\nstatus = 429\nretry_after = 7").post(request())
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert answer.body["error"]["type"] == "rate_limit_error"


def test_an_error_says_when_to_come_again_as_a_date(play: Play) -> None:
    answer = play("[[reply]]\nstatus = 529\nretry_at = 60").post(request())
    left = parsedate_to_datetime(answer.headers["retry-after"]).timestamp() - time.time()
    assert answer.status == 529
    assert 50 < left <= 60


def broken(running: Endpoint) -> str:
    """Return the part of a stream that arrives before its connection drops."""
    with pytest.raises(http.client.IncompleteRead) as caught:
        running.post(request(stream=True, tools=[TOOL]))
    return caught.value.partial.decode()


def test_a_stream_is_cut_in_the_middle_of_a_word(play: Play) -> None:
    running = play(
        '[[reply]]\ntext = "These are several uncommonly words."\ncut = "text"' + AND_THEN
    )
    arrived = broken(running)
    assert '"are "' in arrived
    assert '"seve"' in arrived
    assert "message_stop" not in arrived
    assert "Here you are." in json.dumps(running.post(request(tools=[TOOL])).body)


def test_a_stream_is_cut_in_the_middle_of_a_tool_input(play: Play) -> None:
    entry = (
        '[[reply]]\ntool = [{ name = "read_file", input = { path = "%s" } }]\ncut = "tool_input"'
    )
    arrived = broken(play(entry % ("long/" * 30)))
    assert "input_json_delta" in arrived
    assert "content_block_stop" not in arrived


def test_the_sdk_sees_a_cut_stream_as_a_connection_error(play: Play) -> None:
    client = play('[[reply]]\ntext = "Some words of it."\ncut = "text"').client()
    with (
        pytest.raises(Exception, match="incomplete chunked read"),
        client.messages.stream(**request()) as stream,
    ):
        list(stream)


def test_an_event_of_the_stream_is_malformed_and_the_others_are_whole(play: Play) -> None:
    answer = play('[[reply]]\ntext = "one two three four"\nmalformed = true').post(
        request(stream=True)
    )
    data = [line[6:] for line in answer.body.splitlines() if line.startswith("data: ")]
    broken_ones = [line for line in data if not line.endswith("}")]
    assert len(broken_ones) == 1
    texts = [json.loads(line) for line in data if line not in broken_ones]
    deltas = [event["delta"]["text"] for event in texts if event["type"] == "content_block_delta"]
    assert "".join(deltas) == "one two three four"
    assert texts[-1]["type"] == "message_stop"


def test_an_error_comes_in_the_middle_of_the_stream(play: Play) -> None:
    running = play('[[reply]]\ntext = "one two three"\nerror_event = "overloaded_error"' + AND_THEN)
    client = running.client()
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        client.messages.stream(**request()) as stream,
    ):
        list(stream)
    assert caught.value.type == "overloaded_error"
    assert client.messages.create(**request()).content[0].to_dict()["text"] == "Here you are."


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"x_api_key": None}, 401, "authentication_error"),
        ({"x_api_key": "bad"}, 401, "authentication_error"),
        ({"x_api_key": "nocredit"}, 402, "billing_error"),
        ({"x_api_key": "forbidden"}, 403, "permission_error"),
        ({"x_api_key": None, "authorization": "Bearer token"}, 200, None),
        ({"anthropic_version": None}, 400, "invalid_request_error"),
        ({"beta": "nonsense"}, 400, "invalid_request_error"),
        ({"path": "/v1/complete"}, 404, "not_found_error"),
    ],
)
def test_a_key_a_version_and_a_known_path_are_needed(
    talker: Endpoint, headers: dict[str, str], status: int, kind: str | None
) -> None:
    answer = talker.post(request(), **headers)
    assert answer.status == status
    assert kind is None or answer.body["error"]["type"] == kind


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b'{"x": NaN}', b'"\\ud800"', b'{"model": "\\ud800"}', b"\xff"]
)
def test_what_is_no_json_of_texts_is_refused(talker: Endpoint, body: bytes) -> None:
    assert talker.post(body).status == 400


def test_a_body_that_is_too_large_is_refused_before_it_is_read(talker: Endpoint) -> None:
    answer = talker.post(b"", content_length=str(33 << 20))
    assert (answer.status, answer.body["error"]["type"]) == (413, "request_too_large")


def test_a_body_may_come_in_chunks(talker: Endpoint) -> None:
    raw = json.dumps(request()).encode()
    for body, status in ((iter([raw[:20], raw[20:]]), 200), (iter([b"{"]), 400)):
        connection = talker.connection()
        connection.request("POST", "/v1/messages", body, HEADERS, encode_chunked=True)
        reply = connection.getresponse()
        reply.read()
        connection.close()
        assert reply.status == status


def test_a_client_that_hangs_up_is_recorded_and_the_session_goes_on(play: Play) -> None:
    running = play(f'[[reply]]\ntext = "{"word " * 5000}"\ndelay_ms = 1' + AND_THEN)
    connection = running.connection()
    connection.request("POST", "/v1/messages", json.dumps(request(stream=True)), HEADERS)
    reply = connection.getresponse()
    assert b"message_start" in reply.read1()
    reply.close()
    connection.close()
    while not running.lines():
        time.sleep(0.01)
    assert running.lines()[0]["error"] == "the client hung up"
    going_on = request(user("Hello."), assistant("word"), user("Go on."))
    assert running.post(going_on).body["content"] == [text("Here you are.")]


def test_a_connection_is_kept_for_further_requests(talker: Endpoint) -> None:
    client = talker.client()
    for number in range(3):
        client.messages.create(**request(user(f"Request {number}")))
    assert client.messages.count_tokens(
        messages=[{"role": "user", "content": "x"}], model=request()["model"]
    )
