"""Sessions with models whose window is smaller than the budget."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apis.conftest import ChatClient
from tests.conversation.client import Client, text, tool_use, words

FEW = {"below": 16_000, "system": "Be brief.", "tools": ["eval_sexp", "file_info", "recall_result"]}


def tiers(client: Client) -> dict[str, int]:
    """Return the limit of each tier."""
    return {name: tier["limit"] for name, tier in client.budget()["tiers"].items()}


@pytest.mark.parametrize("window", [8_192, 32_768])
def test_the_budget_is_scaled_to_the_window_and_the_person_is_told(
    chat_client: ChatClient, window: int
) -> None:
    client = chat_client(window=window)
    begun = client.begin("Hello.")
    assert (
        f"has a window of {window:,} tokens, less than the budget of 100,000" in begun["notes"][0]
    )
    assert sum(tiers(client).values()) <= window
    assert begun["budget"]["total"] == window
    assert begun["max_tokens"] + begun["budget"]["prompt_limit"] <= window


def test_the_system_tier_has_first_what_it_needs(chat_client: ChatClient) -> None:
    client = chat_client(window=8_192)
    client.system_text = words(2_000)
    client.begin("Hello.")
    used = client.budget()["tiers"]["system"]
    assert 0 <= used["limit"] - used["used"] < 200
    assert tiers(client)["tool_results"] > 1_500


def test_what_a_call_may_deliver_is_scaled_too(chat_client: ChatClient) -> None:
    client = chat_client(window=8_192)
    client.begin("Look.")
    client.end(tool_use("one", "eval_sexp"))
    envelope = client.record("one", words(5_000))
    assert 300 < envelope["tokens"] < 900


def test_a_window_above_the_budget_changes_nothing(chat_client: ChatClient) -> None:
    client = chat_client(window=150_000)
    assert client.begin("Hello.")["notes"] == []
    assert tiers(client)["tool_results"] == 40_000


def test_tiers_that_were_chosen_stay_in_a_window_that_has_room(chat_client: ChatClient) -> None:
    chosen = {"system": 1_000, "history": 1_000, "tool_results": 16_000, "user_message": 10_000}
    client = chat_client(total=40_000, response=12_000, **chosen)
    client.system_text = words(2_000)
    client.begin("Hello.")
    assert tiers(client) == chosen | {"response": 12_000}


def test_a_small_total_gives_the_system_tier_what_it_needs(chat_client: ChatClient) -> None:
    client = chat_client(total=8_000)
    client.system_text = words(1_500)
    begun = client.begin("Hello.")
    assert begun["notes"] == []
    assert tiers(client)["system"] >= client.budget()["tiers"]["system"]["used"] > 640
    assert sum(tiers(client).values()) <= 8_000


@pytest.mark.parametrize(
    ("window", "total", "is_small"),
    [(8_192, 100_000, True), (200_000, 8_000, True), (200_000, 100_000, False)],
)
def test_few_tools_are_offered_in_short_where_there_is_little_room(
    chat_client: ChatClient, window: int, total: int, is_small: bool
) -> None:
    client = chat_client(window=window, total=total)
    client.request["small_window"] = FEW
    tool: dict[str, Any] = {
        "name": "eval_sexp",
        "description": "Evaluate Lisp. It can do anything. So take care.",
        "input_schema": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "Lisp. One form."}},
        },
    }
    other = {**tool, "name": "other_tool"}
    client.call("tools/register", tools=[tool, other])
    client.begin("Hello.")
    functions = {each["function"]["name"]: each["function"] for each in client.tools}
    assert ("other_tool" not in functions) == is_small
    assert functions["eval_sexp"]["description"].startswith("Evaluate Lisp.")
    assert ("take care" not in functions["eval_sexp"]["description"]) == is_small
    code = functions["eval_sexp"]["parameters"]["properties"]["code"]
    assert (code["description"] == "Lisp.") == is_small
    assert (client.system[0]["content"] == "Be brief.") == is_small


def test_a_tool_whose_schema_suggests_no_count_runs_in_a_small_window(
    chat_client: ChatClient,
) -> None:
    client = chat_client(window=8_192, configured={"tools.deny": []})
    client.request["small_window"] = {**FEW, "tools": ["project_files"]}
    client.begin("Look.")
    envelope = client.call_tool("project_files")
    assert envelope["status"] == "success"
    assert "README.md" in envelope["text"]


def test_a_use_of_a_tool_that_is_not_there_is_told_the_tools_that_were_offered(
    chat_client: ChatClient,
) -> None:
    client = chat_client(window=8_192)
    client.request["small_window"] = FEW
    client.begin("Look.")
    (misfit,) = client.end(tool_use("one", "findFile"))["misfits"]
    assert misfit["tool_use_id"] == "one"
    assert misfit["problem"] == "there is no such tool; there are: file_info, recall_result"


def test_a_long_session_in_a_small_window_stays_within_it(chat_client: ChatClient) -> None:
    client = chat_client(window=8_192)
    client.request["small_window"] = FEW
    for number in range(40):
        client.begin(f"Task {number}.") if number % 8 == 0 else client.begin()
        assert client.budget()["used"] <= client.budget()["prompt_limit"]
        use = tool_use(f"use{number}", "eval_sexp", at=number)
        client.end(text("Working."), use)
        client.record(use["id"], words(900, number), arguments=use["input"])
    recalled = client.call(
        "tools/call", name="recall_result", arguments={"handle": "r1"}, tool_use_id="again"
    )
    assert recalled["status"] == "success"
