"""The models that the endpoint lists, and their windows."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from tests.demo.chatting import chat, post
from tests.demo.conftest import Play
from tests.demo.running import MODEL, Endpoint, request, user


def get(running: Endpoint, **headers: str) -> tuple[int, Any]:
    """Fetch the list of models; return the status and the JSON."""
    connection = running.connection()
    try:
        connection.request("GET", "/v1/models", headers=headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def test_both_sdks_list_the_models(talker: Endpoint) -> None:
    ours = talker.openai(_strict_response_validation=True).models.list()
    theirs = talker.client(_strict_response_validation=True).models.list()
    assert [model.id for model in ours] == [model.id for model in theirs]
    assert MODEL in [model.id for model in ours]
    assert ours.data[0].object == "model"
    assert theirs.data[0].created_at.year == 2026


def test_the_list_needs_a_key(talker: Endpoint) -> None:
    with pytest.raises(openai.AuthenticationError):
        talker.openai("bad").models.list()
    with pytest.raises(anthropic.AuthenticationError):
        talker.client("bad").models.list()
    assert get(talker)[0] == 401


def test_a_window_of_its_own_is_listed_and_limits_every_model(play: Play) -> None:
    running = play("", window=300)
    _, listed = get(running, authorization="Bearer sk-test")
    assert {model["max_model_len"] for model in listed["data"]} == {300}
    assert {model["context_length"] for model in listed["data"]} == {300}
    long = "word " * 400
    answer = running.post(request(user(long)))
    assert answer.error.endswith(" tokens > 300 maximum")
    chatting = post(running, chat({"role": "user", "content": long}))
    assert chatting.body["error"]["code"] == "context_length_exceeded"
    assert running.post(request()).status == 200


def test_without_a_window_the_list_says_none(talker: Endpoint) -> None:
    _, listed = get(talker, authorization="Bearer sk-test")
    assert not any("max_model_len" in model for model in listed["data"])


def test_a_reply_ends_where_the_window_is_full(play: Play) -> None:
    running = play(f'[[reply]]\nrepeat = 2\ntext = "{"many words " * 500}"', window=200)
    message = running.post(request()).body
    assert message["stop_reason"] == "model_context_window_exceeded"
    usage = message["usage"]
    assert usage["input_tokens"] + usage["output_tokens"] == 200
    assert post(running, chat()).body["choices"][0]["finish_reason"] == "length"


def test_a_model_of_another_name_can_be_served(play: Play) -> None:
    running = play("", models=("qwen3:8b",))
    assert post(running, chat(model="qwen3:8b")).status == 200
    assert running.post(request(model="qwen3:8b")).status == 200
    assert post(running, chat(model="qwen3:4b")).status == 404
    _, listed = get(running, authorization="Bearer sk-test")
    assert listed["data"][-1]["id"] == "qwen3:8b"
