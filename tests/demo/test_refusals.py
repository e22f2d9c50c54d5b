"""The requests that the endpoint refuses; the SDK's own types agree on their shape."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from efrit_budget.demo.messages.shapes import BETAS, MessageRequest, check_shape
from efrit_budget.demo.refusals import ApiError
from tests.demo.changes import WRONG, Place, changed, fields, places
from tests.demo.running import (
    MODEL,
    TOOL,
    Block,
    Endpoint,
    assistant,
    request,
    result,
    text,
    use,
    user,
)
from tests.demo.sdk_types import sdk_takes

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
OLD, PLAIN, OTHER = "claude-sonnet-4-6", "claude-sonnet-5", "claude-opus-4-7"
ASKED = user("Read it.")
USED = (ASKED, assistant("I will.", use()))


def system(said: str = "Mind the budget.", **others: Any) -> Block:
    """Return a message at system level."""
    return {"role": "system", "content": [text(said)], **others}


def picture() -> Block:
    """Return an image block."""
    raw = io.BytesIO()
    Image.new("RGB", (300, 200)).save(raw, "PNG")
    data = base64.b64encode(raw.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


ACCEPTED: dict[str, Block] = {
    "one string": request({"role": "user", "content": "Hello."}),
    "two users in a row": request(user("One."), user("Two.")),
    "an assistant's turn in two messages": request(
        *USED, user(result()), assistant("a"), user("b")
    ),
    "a result, then a text": request(*USED, user(result(), "And now?")),
    "two results, in two messages": request(
        ASKED, assistant(use("a"), use("b")), user(result("b")), user(result("a"))
    ),
    "a result that is empty": request(
        *USED, user({"type": "tool_result", "tool_use_id": "toolu_1"})
    ),
    "an image as result": request(*USED, user(result(content=[text("x"), picture()]))),
    "a tool that is not offered": request(*USED, user(result()), tools=[]),
    "a system message behind a user's": request(ASKED, system()),
    "a system message in the middle": request(ASKED, system(), assistant("Yes."), user("Go on.")),
    "four marks": request(
        user({**text("a"), **MARK}),
        system=[{**text("s"), **HOUR}],
        tools=[{**TOOL, **HOUR}],
        **MARK,
    ),
    "everything optional": request(
        tools=[{**TOOL, "strict": True}],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "high"},
        metadata={"user_id": "someone"},
        diagnostics={"previous_message_id": None},
        stop_sequences=["x"],
        service_tier="auto",
    ),
    "no tool choice": request(tools=[TOOL], tool_choice={"type": "none"}),
    "a date behind the model": request(model=f"{MODEL}-20261001"),
    "what older models take": request(
        model=OLD, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000
    ),
    "disabled thinking where it can be": request(model=OTHER, thinking={"type": "disabled"}),
    "forced tools on an older model": request(model=OLD, tools=[TOOL], tool_choice={"type": "any"}),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted_is_valid_for_the_sdk(talker: Endpoint, name: str) -> None:
    answer = talker.post(ACCEPTED[name])
    assert answer.status == 200, answer.body
    assert sdk_takes(ACCEPTED[name])


IN_BETA: dict[str, tuple[Block, str]] = {
    "dropping blocks": (
        request(
            thinking={
                "type": "adaptive",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            }
        ),
        BETAS["block_binding"],
    ),
    "a task budget": (
        request(output_config={"task_budget": {"type": "tokens", "total": 9, "remaining": 5}}),
        BETAS["task_budget"],
    ),
    "a passing system message": (
        request(ASKED, system(clear_at="next_user_message")),
        BETAS["clear_at"],
    ),
    "tools that go": (
        request(
            ASKED,
            {
                "role": "system",
                "content": [
                    {
                        "type": "tool_removal",
                        "tool": {"type": "tool_reference", "name": "read_file"},
                    }
                ],
            },
            tools=[TOOL],
        ),
        BETAS["tool change"],
    ),
    "updates of thinking": (
        request(thinking={"type": "adaptive", "display": "updates"}),
        BETAS["updates"],
    ),
}


@pytest.mark.parametrize("name", IN_BETA)
def test_what_is_in_beta_needs_its_header(talker: Endpoint, name: str) -> None:
    body, header = IN_BETA[name]
    assert talker.post(body, "/v1/messages?beta=true", beta=header).status == 200
    assert sdk_takes(body, is_beta=True)
    assert "Extra inputs are not permitted" in talker.post(body).error


def tools(count: int, **others: Any) -> list[Block]:
    """Return this many tools."""
    return [{**TOOL, "name": f"tool_{number}", **others} for number in range(count)]


REFUSED: list[tuple[Block, str]] = [
    # Roles
    (request(assistant("Hi."), user("Hi.")), 'first message must use the "user" role'),
    (request(ASKED, assistant("I")), "does not support assistant message prefill"),
    (request(system(), ASKED), "messages.0: a message with role 'system' must directly follow"),
    (request(ASKED, assistant("a"), system()), "messages.2: a message with role 'system' must"),
    (request(ASKED, system(), model=PLAIN), "role 'system' is not supported on this model"),
    ({**request(), "messages": []}, "at least one message is required"),
    # Texts
    (request(user("")), "messages: text content blocks must be non-empty"),
    (request(ASKED, assistant("a"), user(" \n")), "must contain non-whitespace text"),
    (request(system=[text("")]), "system: text content blocks must be non-empty"),
    (request(*USED, user(result(content=[text("")]))), "text content blocks must be non-empty"),
    (request(user()), "messages.0: all messages must have non-empty content"),
    # Tool uses
    (
        request(*USED, user("And?")),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    (request(*USED, user("First", result())), "`tool_use` ids were found without `tool_result`"),
    (request(*USED, user(result()), user(result())), "each tool_use must have a single result"),
    (request(user(result())), "messages.0.content.0: unexpected `tool_use_id` found"),
    (
        request(*USED, user(result(), result("toolu_2"))),
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_2.",
    ),
    (
        request(*USED, user(result()), assistant(use()), user(result())),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    (request(ASKED, assistant(use("a b")), user(result("a b"))), "String should match pattern"),
    # Tools
    (request(tools=[TOOL, TOOL]), "tools: Tool names must be unique."),
    (request(tools=[{**TOOL, "name": "a b"}]), "tools.0.name: String should match pattern"),
    (request(tools=[{**TOOL, "name": "a" * 129}]), "tools.0.name: String should match pattern"),
    (request(tools=[{**TOOL, "input_schema": {}}]), "tools.0.input_schema.type: Field required"),
    (
        request(tools=[{**TOOL, "input_schema": {"type": "object", "anyOf": []}}]),
        "does not support oneOf, allOf, or anyOf at the top level",
    ),
    # Cache marks
    (request(tools=tools(5, **MARK)), "A maximum of 4 blocks with cache_control may be provided"),
    (request(tools=tools(4, **MARK), **MARK), "may be provided. Found 5."),
    (
        request(tools=tools(1, **MARK), system=[{**text("s"), **HOUR}]),
        "a ttl='1h' cache_control block must not come after a ttl='5m'",
    ),
    # Parameters
    (request(temperature=0.5), "`temperature` is not supported on this model."),
    (request(top_p=0.5), "`top_p` is not supported on this model."),
    (request(top_k=5), "`top_k` is not supported on this model."),
    (request(thinking={"type": "disabled"}), '"thinking.type.disabled" is not supported'),
    (
        request(thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=3000),
        '"thinking.type.enabled" is not supported',
    ),
    (
        request(model=OLD, thinking={"type": "enabled", "budget_tokens": 2000}),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    (request(tools=[TOOL], tool_choice={"type": "any"}), "tool_choice: forcing tool use"),
    (
        request(tools=[TOOL], tool_choice={"type": "tool", "name": "read_file"}),
        "tool_choice: forcing tool use",
    ),
    (request(max_tokens=128_001), "max_tokens: 128001 > 128000, which is the maximum"),
    (request(top_n=5), "top_n: Extra inputs are not permitted"),
    (request(ASKED, stream=1), "stream: Input should be a valid boolean"),
    (
        request({"role": "user", "content": "x", "at": 1}),
        "messages.0.at: Extra inputs are not permitted",
    ),
    (
        request(
            user(
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "!"},
                }
            )
        ),
        "Could not process image",
    ),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_what_the_api_refuses_is_refused_in_its_words(
    talker: Endpoint, body: Block, message: str
) -> None:
    answer = talker.post(body)
    assert answer.status == 400
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert message in answer.error


@pytest.mark.parametrize("name", ["claude-nonsense-9", "gpt-9", "claude-sonnet-5-5-nonsense"])
def test_an_unknown_model_is_not_found(talker: Endpoint, name: str) -> None:
    answer = talker.post(request(model=name))
    assert (answer.status, answer.error) == (404, f"model: {name}")
    assert answer.body["error"]["type"] == "not_found_error"


def test_thinking_at_the_end_of_a_message_is_refused(talker: Endpoint) -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "x"}
    answer = talker.post(request(ASKED, assistant(block), user("Go on.")))
    assert (
        "messages.1: The final block in an assistant message cannot be `thinking`" in answer.error
    )


def test_a_prompt_above_the_window_is_too_long(talker: Endpoint) -> None:
    answer = talker.post(request(user("word " * 300_000), model="claude-haiku-4-5"))
    assert answer.status == 400
    assert answer.error.startswith("prompt is too long: ")
    assert answer.error.endswith(" tokens > 200000 maximum")


def test_a_refused_request_does_not_move_the_scenario_on(talker: Endpoint) -> None:
    asked = user("Only this test asks so.")
    assert talker.post(request(asked, temperature=1)).status == 400
    assert talker.post(request(asked)).status == 200


def test_counting_refuses_the_same(talker: Endpoint) -> None:
    body = {name: value for name, value in request().items() if name != "max_tokens"}
    assert talker.post(body, "/v1/messages/count_tokens").body["input_tokens"] > 0
    refused = talker.post({**body, "max_tokens": 5}, "/v1/messages/count_tokens")
    assert "max_tokens: Extra inputs are not permitted" in refused.error


# Shapes: every place of a rich request, changed in every way

RICH = request(
    user({**text("Look."), **MARK}, picture()),
    assistant({"type": "thinking", "thinking": "hm", "signature": "s"}, "I do.", use(path="a")),
    user({**result(content=[text("found")]), "is_error": False}, "Go on."),
    system(),
    system=[text("You work.")],
    tools=[TOOL],
    tool_choice={"type": "auto"},
    thinking={"type": "adaptive", "display": "omitted"},
    output_config={"effort": "low"},
    metadata={"user_id": "u"},
    diagnostics={"previous_message_id": "msg_1"},
    stream=False,
    cache_control={"type": "ephemeral", "ttl": "5m"},
)
FREE = (("messages", 1, "content", 2, "input"), ("tools", 0, "input_schema"))
"""The places below which any value is allowed."""


def we_take(body: Block) -> bool:
    """Return whether our own check accepts the shape of a request."""
    try:
        check_shape(body, MessageRequest)
    except ApiError:
        return False
    return True


def test_the_rich_request_is_right_for_both() -> None:
    assert we_take(RICH)
    assert sdk_takes(RICH)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(places(RICH)),
    value=st.sampled_from(WRONG),
    removes=st.booleans(),
)
def test_what_the_sdks_types_refuse_is_refused_by_ours(
    path: Place, value: Any, *, removes: bool
) -> None:
    body = changed(RICH, path, value, removes=removes)
    if we_take(body):
        assert sdk_takes(body), path


@pytest.mark.parametrize("path", fields(RICH, FREE))
def test_a_field_that_nobody_knows_is_refused_beside_every_other(path: Place) -> None:
    assert not we_take(changed(RICH, (*path[:-1], "unheard_of"), 1))
