"""Turns as real clients make them: begun twice, ended late, broken off, with odd replies."""

from __future__ import annotations

import math
from typing import Any

import pytest

from efrit_budget.budget.calibration import FRAME
from efrit_budget.conversation.begin import BudgetError
from efrit_budget.errors import InvalidParamsError
from tests.conversation.api_rules import violations
from tests.conversation.client import PLAIN_MODEL, Client, text, thinking, tool_use, words
from tests.conversation.conftest import OpenClient

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 60_000},
}


def read_back(client: Client) -> None:
    """Check that the sidecar's list is the client's, and that the API would take it."""
    assert client.call("session/messages")["messages"] == client.messages
    assert not violations(client.messages, system_messages=True)


# Begun and not ended


def test_the_budget_of_a_turn_that_is_begun_counts_what_was_sent_once(client: Client) -> None:
    client.turn(words(2_000), message="Find it.")
    before = client.budget()
    begun = client.begin()
    assert client.budget() == begun["budget"]
    for name in ("remaining", "available_for_tools", "tiers"):
        assert begun["budget"][name] == before[name], name
    assert begun["budget"]["turn"] == before["turn"] + 1


def test_a_turn_that_is_begun_again_sends_the_same_request(client: Client) -> None:
    client.turn(words(500), message="Find it.")
    client.begin()
    before = client.messages
    again = client.begin()
    assert again["append"] is None
    assert again["rewrite"] is None
    assert client.messages == before
    client.end(text("There it is."))
    read_back(client)


def test_a_request_that_is_sent_again_is_stored_once(client: Client) -> None:
    client.turn(words(500), message="Find it.")
    begun = client.begin("In the tests, I mean.")
    held = client.messages
    again = client.begin("In the tests, I mean.")
    assert again["turn_id"] == begun["turn_id"]
    assert again["epoch"] == begun["epoch"]
    assert again["append"] is None
    assert again["rewrite"] == {"messages": held}, "for a client that had no answer"
    assert again["budget"] == begun["budget"]
    client.end(text("There."))
    said = [turn["begins"] for turn in client.call("session/turns")["turns"]]
    assert said.count("In the tests, I mean.") == 1
    read_back(client)


def test_the_same_words_after_a_reply_are_another_request(client: Client) -> None:
    for _ in range(2):
        client.begin("Go on.")
        client.end(text("I did."))
    said = [turn["begins"] for turn in client.call("session/turns")["turns"]]
    assert said.count("Go on.") == 2


def test_a_request_sent_again_for_another_model_is_stored_once(client: Client) -> None:
    begun = client.begin("Find it.")
    again = client.begin("Find it.", model=PLAIN_MODEL)
    assert again["turn_id"] == begun["turn_id"] + 1
    assert client.texts("user") == ["Find it."]


def test_what_a_person_adds_while_no_reply_came_is_sent_behind_the_rest(client: Client) -> None:
    client.begin("Find it.")
    client.begin("In the tests, I mean.")
    client.end(text("There."), turn_id=None)
    assert [message["role"] for message in client.messages] == ["user", "user", "assistant"]
    read_back(client)


def test_a_turn_that_nothing_waits_for_is_refused(client: Client) -> None:
    with pytest.raises(InvalidParamsError, match="nothing in the conversation that waits"):
        client.begin()
    with pytest.raises(InvalidParamsError, match="nothing in the conversation that waits"):
        client.begin([text(" \n")])
    client.begin("Hello.")
    client.end(text("Hello."))
    with pytest.raises(InvalidParamsError, match="nothing in the conversation that waits"):
        client.begin()


def test_a_paused_reply_goes_on_without_a_message(client: Client) -> None:
    client.begin("Search the web.")
    client.end(text("Searching."), stop_reason="pause_turn")
    assert client.begin()["append"] is None
    client.end(text("Found."))
    read_back(client)


# Ended late, or again


def test_a_turn_that_is_ended_again_changes_nothing(client: Client) -> None:
    client.begin("Hello.")
    first = client.end(text("Hello."), usage={"input_tokens": 900, "output_tokens": 5})
    assert client.call("turn/end", turn_id=1, content=[text("Something else")]) == first


def test_the_late_reply_of_a_turn_that_was_given_up_stays_out_and_is_kept(
    client: Client,
) -> None:
    client.begin("Find it.")
    client.begin("Never mind, do that.")
    late = client.end(
        text("I found it."), tool_use("late", "eval_sexp"), turn_id=1, usage={"output_tokens": 7}
    )
    assert late["append"] is None
    assert late["turn_id"] == 1
    client.end(text("Done."), turn_id=2)
    assert client.messages[-1]["content"] == [text("Done.")]
    read_back(client)
    turns = client.call("session/transcript")["turns"]
    kept = next(turn for turn in turns if turn["turn"] == 1 and turn["kind"] == "reply")
    assert kept["content"][0] == text("I found it.")
    assert not kept["in_window"]
    assert "I found it." in client.use("recall_result", handle="t1")["text"]
    assert client.call("session/status")["usage"]["output_tokens"] == 7


def test_a_turn_that_never_began_cannot_be_ended(client: Client) -> None:
    client.begin("Hello.")
    with pytest.raises(InvalidParamsError, match="no turn 5 has begun"):
        client.end(text("Hello."), turn_id=5)


def test_the_transcript_says_what_each_result_cost(client: Client) -> None:
    client.begin("Do it.")
    client.end(tool_use("one", "eval_sexp"), tool_use("two", "eval_sexp"))
    given = client.record("one", words(300))
    results = [
        entry["tokens"]
        for entry in client.call("session/transcript")["turns"]
        if entry["kind"] == "result"
    ]
    assert results == [given["tokens"], None]


# Results that come late, or early


def unanswered(client: Client) -> None:
    """Continue a session although a tool use of its first reply has no result."""
    client.begin("Do it.")
    client.end(tool_use("slow", "eval_sexp"), tool_use("quick", "eval_sexp"))
    client.record("quick", "done\n")
    client.begin("What happened?")


def test_a_tool_that_gave_nothing_is_answered_in_place(client: Client) -> None:
    unanswered(client)
    results = client.messages[-1]["content"]
    assert [block["tool_use_id"] for block in results[:2]] == ["slow", "quick"]
    assert results[0]["content"] == [text("§ eval_sexp was not run.")]
    assert results[0]["is_error"]
    read_back(client)


def test_a_late_result_is_kept_under_a_handle_and_the_conversation_stays(
    client: Client,
) -> None:
    unanswered(client)
    before, budget = client.messages, client.budget()
    late = client.record("slow", "the late result\n")
    assert late["status"] == "success"
    assert late["text"].startswith("the late result\n")
    assert client.messages == before
    read_back(client)
    assert client.budget()["tiers"] == budget["tiers"]
    assert client.state(late["handle"]) == "gone"
    recalled = client.use("recall_result", handle=late["handle"])
    assert recalled["text"].startswith("the late result\n")
    assert client.record("slow", "the late result\n") == late
    assert "the late result" in client.use("recall_result")["text"]


def test_a_late_call_of_a_tool_with_effects_runs_once(client: Client) -> None:
    client.begin("List.")
    client.end(tool_use("slow", "catalogue", max_files=3))
    client.begin("And?")
    late = client.call(
        "tools/call", name="catalogue", arguments={"max_files": 3}, tool_use_id="slow"
    )
    assert late["data"]["files"] == ["file-0.el", "file-1.el", "file-2.el"]
    read_back(client)


def test_after_a_rewrite_the_answer_says_where_the_late_result_is(client: Client) -> None:
    unanswered(client)
    late = client.record("slow", words(200))
    client.end(text("I see."))
    for number in range(20):
        client.turn(words(4_000, number), message="Go on." if number == 0 else None)
    answers = client.results()
    assert client.epoch() > 1
    assert answers.get("slow", "").startswith(f"§ [{late['handle']}: its result came late")


def test_a_result_that_comes_before_its_reply_was_told_of_takes_its_place(
    client: Client,
) -> None:
    client.begin("Do it.")
    early = client.record("use", "done already\n")
    client.end(tool_use("use", "eval_sexp"))
    used = early["tokens"] + math.ceil(FRAME)
    assert client.budget()["tiers"]["tool_results"]["used"] == used
    client.begin()
    assert client.results() == {"use": early["text"]}
    read_back(client)


# Odd replies


def test_a_reply_that_repeats_an_earlier_id_is_answered_in_its_own_place(
    client: Client,
) -> None:
    client.begin("Do it.")
    client.end(tool_use("call_0", "eval_sexp", form="1"))
    client.record("call_0", "first\n", arguments={"form": "1"})
    client.begin()
    client.end(tool_use("call_0", "eval_sexp", form="2"))
    client.record("call_0", "second\n", arguments={"form": "2"})
    client.begin()
    read_back(client)
    shown = [
        block["content"][0]["text"].splitlines()[0]
        for message in client.messages
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert shown == ["first", "second"]
    assert [entry["tool_use_id"] for entry in client.entries()] == ["call_0", "call_0"]


def test_blank_texts_and_thinking_without_an_end_are_not_sent_back(client: Client) -> None:
    client.begin("Hello.")
    broken = {"type": "thinking", "thinking": "and then", "signature": ""}
    ended = client.end(thinking(), text("\n\n"), text("Hello."), broken, aborted=True)
    assert ended["append"] == {
        "messages": [{"role": "assistant", "content": [thinking(), text("Hello.")]}]
    }
    client.begin("Go on.")
    read_back(client)
    transcript = client.call("session/transcript")["turns"]
    assert broken in transcript[1]["content"]


@pytest.mark.parametrize("content", [[], [text("  ")], [thinking()]])
def test_a_reply_with_nothing_to_send_back_leaves_the_person_s_turn_at_the_end(
    client: Client, content: list[Any]
) -> None:
    client.begin("Hello.")
    assert client.end(*content, stop_reason="max_tokens")["append"] is None
    client.begin()
    assert [message["role"] for message in client.messages] == ["user"]
    read_back(client)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ([{"type": "tool_result", "tool_use_id": "x", "content": "done"}], "user_message.0"),
        ([text("a"), thinking()], "user_message.1"),
        ([{"text": "without a type"}], "user_message.0.type"),
        ([{"type": "text"}], "user_message.0.text"),
    ],
)
def test_what_is_no_message_of_a_person_is_refused_by_field(
    client: Client, message: list[Any], field: str
) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        client.begin(message)
    assert (refused.value.data or {})["fields"][0]["field"] == field


@pytest.mark.parametrize(
    "wrong", [{"input": "text"}, {"id": ""}, {"name": "two\nlines"}, {"id": 5}]
)
def test_a_tool_use_that_lacks_something_is_refused_by_field(
    client: Client, wrong: dict[str, Any]
) -> None:
    client.begin("Do it.")
    with pytest.raises(InvalidParamsError, match=r"content\.0: .* an id, a name and an input"):
        client.end(tool_use("a", "eval_sexp") | wrong)


def test_half_a_character_goes_to_the_model_and_comes_back_as_it_was(client: Client) -> None:
    client.system_text = "half \ud800"
    client.begin("half \ud83d")
    client.end(text("half \ud83d"), tool_use("a", "eval_sexp", form="\ud83d"))
    client.begin()
    read_back(client)
    assert client.messages[0]["content"] == [text("half \ud83d")]


# Large requests


def test_a_request_above_its_tier_is_stored_and_its_first_page_sent(client: Client) -> None:
    region = words(15_000)
    begun = client.begin([text("Explain this:"), text(region)])
    said, page = client.messages[0]["content"]
    assert said == text("Explain this:")
    assert page["text"].startswith(region[:1_000])
    assert "continuation_token r1:" in page["text"]
    assert begun["budget"]["tiers"]["user_message"]["used"] <= 10_000
    (note,) = begun["notes"]
    assert "the whole is stored as r1." in note
    token = page["text"].partition("continuation_token ")[2].split()[0]
    rest = client.use("recall_result", continuation_token=token)
    assert rest["text"].splitlines()[0] in region


def test_images_stay_beside_a_text_that_is_cut_for_them(client: Client) -> None:
    begun = client.begin([IMAGE, text(words(15_000)), IMAGE, text("What is this?")])
    first, page, second, said = client.messages[0]["content"]
    assert first == second == IMAGE
    assert said == text("What is this?")
    assert page["text"].startswith("line 0 of text 0")
    assert begun["budget"]["tiers"]["user_message"]["used"] <= 10_000
    read_back(client)


def test_an_image_costs_what_images_cost_and_not_what_its_bytes_would(client: Client) -> None:
    begun = client.begin([IMAGE])
    assert 1_000 < begun["budget"]["tiers"]["user_message"]["used"] < 3_000


def test_what_does_not_fit_is_refused_with_what_to_do_and_changes_nothing(
    open_client: OpenClient,
) -> None:
    client = open_client(total=6_000)
    client.turn(words(100), message="Hello.")
    client.begin()
    client.end(text("I see."))
    before = client.call("session/messages"), client.call("worklog/list"), client.budget()
    client.system_text = words(6_000)
    with pytest.raises(BudgetError, match="Raise the total, shorten the request, or unpin"):
        client.begin("Go on.")
    after = client.call("session/messages"), client.call("worklog/list"), client.budget()
    assert after == before
    client.app.call(
        "session/open",
        {"root": str(client.root), "session_id": client.session, "limits": {"total": 60_000}},
    )
    client.begin("Go on.")
    read_back(client)
