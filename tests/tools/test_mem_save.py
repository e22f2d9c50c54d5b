"""Saving observations, through a real sidecar."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connection import Connection
from tests.tools.conftest import Call, shown
from tests.tools.mem import save


def test_what_is_saved_in_one_session_is_found_in_the_next(
    sidecar: Connection, call: Call, project: Path
) -> None:
    number = save(call, "Retries back off", "Wait twice as long each time.")
    other = sidecar.request("session/open", root=str(project))["session_id"]
    found = sidecar.call_tool(other, "mem_search", "there", {"query": "retry wait"})
    assert [one["id"] for one in found["data"]["results"]] == [number]


def test_the_first_save_ever_says_under_which_number_and_project(call: Call) -> None:
    envelope = call("mem_save", title="One", content="Two.")
    assert shown(envelope) == "Saved #1 in project project."
    assert envelope["data"]["outcome"] == "created"


def test_a_topic_key_updates_and_the_earlier_revision_stays_readable(call: Call) -> None:
    number = save(call, "Port", "It is 80.", topic_key="port")
    envelope = call("mem_save", title="Port", content="It is 81.", topic_key="port")
    assert shown(envelope) == f"Updated #{number} to revision 2; earlier ones stay readable."
    assert "It is 81." in call("mem_get_observation", id=number)["text"]
    assert "It is 80." in call("mem_get_observation", id=number, revision=1)["text"]


def test_the_same_again_counts_as_a_duplicate(call: Call) -> None:
    number = save(call, "Port", "It is 80.")
    envelope = call("mem_save", title="Port", content="It is 80.")
    assert shown(envelope) == f"#{number} holds the same since minutes ago; nothing was added."
    assert "saved again 1 times" in call("mem_get_observation", id=number)["text"]


def test_the_same_content_under_another_title_says_what_was_not_kept(call: Call) -> None:
    number = save(call, "Port", "It is 80.")
    envelope = call("mem_save", title="The port", content="It is  80.", tags=["net"])
    assert shown(envelope) == (
        f"#{number} holds the same content since minutes ago and was counted once more; not kept:"
        " another title, another tags."
        f" With id {number} it is changed; a topic_key of its own keeps both."
    )
    both = call("mem_save", title="The port", content="It is 80.", topic_key="port")
    assert both["data"]["outcome"] == "created"


def test_the_same_tool_use_saves_once(call: Call) -> None:
    arguments = {"title": "Port", "content": "It is 80."}
    first = call("mem_save", use="one", **arguments)
    assert call("mem_save", use="one", **arguments) == first
    assert "saved again" not in call("mem_get_observation", id=1)["text"]


def test_a_content_of_a_hundred_thousand_characters_is_kept_whole(call: Call) -> None:
    content = "".join(f"{line:07} nine\n" for line in range(100_000 // 13))
    number = save(call, "Long", content)
    read, token = "", None
    for _ in range(50):
        beside = {} if token is None else {"continuation_token": token}
        page = call("mem_get_observation", **({"id": number} if token is None else beside))
        read += shown(page).partition("Showing ")[0]
        token = page["data"].get("continuation_token")
        if token is None:
            break
    assert read.partition("\n\n")[2].rstrip() == content.rstrip()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"title": "x"}, "content"),
        ({"title": " ", "content": "x"}, "title: an observation needs a title"),
        ({"title": "x" * 501, "content": "x"}, "title: 501 characters; at most 500"),
        ({"title": "x", "content": "x" * 100_001}, "content: 100,001 characters; at most 100,000"),
        ({"title": "x", "content": "x", "importance": 2}, "importance: 2.0 is not from 0 to 1"),
        ({"title": "x", "content": "x", "tags": ["t"] * 2 + ["u" * 201]}, "tags: 201 characters"),
        ({"title": "x", "content": "x", "related": [9]}, "there is no observation #9"),
        ({"title": "x", "content": "x", "related": [0]}, "must be from 1"),
        ({"title": "x", "content": "x", "wrong": 1}, "wrong"),
    ],
)
def test_what_cannot_be_saved_says_why(call: Call, arguments: dict[str, object], said: str) -> None:
    envelope = call("mem_save", **arguments)
    assert envelope["status"] == "error"
    assert said in envelope["message"]
    assert call("mem_stats")["data"]["observations"] == 0


def test_numbers_as_text_are_taken(call: Call) -> None:
    save(call, "First")
    number = save(call, "Second", importance="0.9", related=["1"])
    assert "Related: #1 First" in call("mem_get_observation", id=str(number))["text"]


# What is private

SECRET = "hunter2x"


def files_with_the_secret(folder: Path) -> list[str]:
    """Return the files of the sidecar's home, journal and log included, that have the secret."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.name.endswith("-wal") for file in files), "the journal is looked at, too"
    return [file.name for file in files if SECRET.encode() in file.read_bytes()]


def test_what_is_private_is_in_no_file_and_no_answer(
    sidecar: Connection, session: str, call: Call, home: Path
) -> None:
    private = f"before <private>{SECRET}</private> after"
    first = call(
        "mem_save",
        use="saving",
        title=private,
        content=private,
        tags=[private],
        topic_key=private,
        wrong=private,
    )
    second = call("mem_save", title=private, content=private, tags=[private], topic_key=private)
    assert (first["status"], second["status"]) == ("error", "success")
    log = sidecar.request("worklog/list", session_id=session)
    assert SECRET not in str(log)
    assert "before [private] after" in call("mem_get_observation", id=1)["text"]
    assert files_with_the_secret(home) == []


def test_what_is_private_in_a_model_s_reply_is_not_kept_with_the_conversation(
    sidecar: Connection, session: str, home: Path
) -> None:
    turn = sidecar.request("turn/begin", session_id=session, model="m", user_message="Save it.")
    given = {"title": "Key", "content": f"It is <private>{SECRET}</private>."}
    use = {"type": "tool_use", "id": "t1", "name": "mem_save", "input": given}
    ended = sidecar.request(
        "turn/end",
        session_id=session,
        turn_id=turn["turn_id"],
        usage=None,
        content=[use],
        stop_reason="tool_use",
    )
    [message] = ended["append"]["messages"]
    assert message["content"][0]["input"]["content"] == "It is [private]."
    saved = sidecar.request(
        "tools/call", session_id=session, name="mem_save", arguments=given, tool_use_id="t1"
    )
    assert saved["status"] == "success"
    assert SECRET not in str(sidecar.request("session/messages", session_id=session))
    assert files_with_the_secret(home) == []


def test_a_number_changes_that_observation_and_what_is_not_given_stays(call: Call) -> None:
    number = save(call, "Port", "It is 80.", tags=["net"], importance=0.9)
    changed = call("mem_save", id=number, title="Port", content="It is 81.", type="decision")
    assert shown(changed) == f"Updated #{number} to revision 2; earlier ones stay readable."
    text = call("mem_get_observation", id=number)["text"]
    assert f"#{number} [decision] Port" in text
    assert "importance 0.9, tags: net" in text
    assert "It is 80." in call("mem_get_observation", id=number, revision=1)["text"]


def test_a_number_that_is_not_there_and_a_field_that_stays_are_refused(call: Call) -> None:
    number = save(call, "Port", "It is 80.")
    gone = call("mem_save", id=99, title="Port", content="It is 81.")
    assert gone["message"] == "mem_save: there is no observation #99; mem_search finds some"
    moved = call("mem_save", id=number, title="Port", content="It is 81.", project="other")
    assert moved["message"] == "mem_save: project: stays as it is where id is given"


def test_observations_with_mostly_the_same_words_are_named_when_saving(call: Call) -> None:
    first = save(call, "Login", "We chose tokens with rotation for the login service.")
    save(call, "Colours", "The header is green.")
    said = call(
        "mem_save", title="Login", content="We chose tokens without rotation for the login service."
    )
    assert shown(said).endswith(f" Much the same words: #{first} Login (80%).")
    assert said["data"]["alike"] == [first]
    other = call("mem_save", title="Header", content="Its font is large.")
    assert other["data"]["alike"] == []
