"""Faults of servers, in both APIs: each ends usable, and the server's words are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.servers.aimock import Fixture, aimock
from tests.servers.driving import Api, Emacs, Server, emacs
from tests.servers.litellm import Proxy
from tests.servers.scripted import scripted

RETRYING = {"efrit-claude-retries": "1", "efrit-claude-retry-delay": "0.05"}
CALLS = """\
text = "I look."
tool = [ { name = "read_file", input = { path = "a.txt" } },
         { name = "read_file", input = { path = "b.txt" } } ]
"""
BROKEN = "payload is not completed|cannot be read"
"""What the person reads of a reply that broke off behind the proxy."""

BEHIND_LITELLM = [
    ('status = 429\nretry_after = 0\nmessage = "too many words"', "too many words"),
    ('status = 529\nmessage = "the machine is full"', "the machine is full"),
    ('status = 500\nmessage = "it broke"', "it broke"),
    ('status = 400\nmessage = "that is wrong"', "that is wrong"),
    ('status = 401\nmessage = "who are you"', "who are you"),
    ("""status = 503\nerror_body = '{"error": "The model is loading"}'""", "The model is loading"),
    (
        'status = 502\ncontent_type = "text/html"\nerror_body = "<title>Gone</title>ask later"',
        "ask later",
    ),
    (
        """status = 200\nerror_body = '{"error": {"message": "Provider is sad", "code": 429}}'""",
        "Provider is sad",
    ),
    ('text = "One two"\ncut = "text"', BROKEN),
    (f'{CALLS}cut = "tool_input"', BROKEN),
    ('text = "One two"\nerror_event = "overloaded_error"\nmessage = "no more"', "no more"),
    (
        """text = "One two"\nerror_event = "api_error"\nerror_body = '{"error": "no memory"}'""",
        "no memory|An error occurred during streaming",
    ),
]
"""Faults of the server behind the proxy, and a pattern of what the person reads of each.

That are the server's words, unless the proxy puts its own in their place.
"""
MALFORMED = ('text = "One two"\nmalformed = true', "cannot be read")
"""A fault that the proxy passes on in the Messages API; in a chat it leaves such an event out."""
FORMS = [
    *("interleaved = true", "complete_input = true", "done = true", "done = false"),
    *("comments = true", 'usage = "none"', 'usage = "zero"', "delay_ms = 20"),
    *('ids = ["call_0"]', 'ids = [""]', "no_ids = true"),
]
"""Forms of a reply of the server behind the proxy."""
BIG = 'text = "Many words. "\nbig_event = 10000000'

TEXT: Fixture = {"content": "One two three four five six seven eight nine ten."}
CALL: Fixture = {"toolCalls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}


def failure(status: int, message: str, kind: str) -> Fixture:
    """Return the fixture of an error."""
    return {"response": {"error": {"message": message, "type": kind}, "status": status}}


OF_AIMOCK: list[tuple[Fixture, str]] = [
    (failure(429, "too many words", "rate_limit_error"), "429: too many words"),
    (failure(529, "the machine is full", "overloaded_error"), "529: the machine is full"),
    (failure(500, "it broke", "server_error"), "500: it broke"),
    (failure(401, "who are you", "authentication_error"), "401: who are you"),
    ({"response": TEXT, "truncateAfterChunks": 3, "latency": 10}, "The stream broke off"),
    (
        {"response": CALL, "truncateAfterChunks": 4, "latency": 10, "chunkSize": 3},
        "The stream broke off",
    ),
    ({"response": TEXT, "chaos": {"rateLimitRate": 1}}, "429: Chaos: rate limit exceeded"),
    ({"response": TEXT, "chaos": {"dropRate": 1}}, "500: Chaos: request dropped"),
    ({"response": TEXT, "chaos": {"disconnectRate": 1}}, "Empty reply from server"),
    ({"response": TEXT, "chaos": {"malformedRate": 1}}, "malformed json: <<<chaos>>>"),
]
"""Faults of aimock, and a pattern of what the person reads of each."""

pytestmark = [
    pytest.mark.soak(alone=True),
    pytest.mark.parametrize("api", ["messages", "chat"]),
]


@pytest.fixture
def project(project: Path) -> Path:
    """A project with two files."""
    for name in ("a.txt", "b.txt"):
        (project / name).write_text(f"{name}\n", encoding="utf-8")
    return project


def meet(running: Emacs, faults: Iterable[str]) -> None:
    """Meet faults, each followed by the reply "Now."; fail unless the person reads what matches."""
    for number, words in enumerate(faults):
        rest = running.say(f"Go on, {number}.").rest
        read = [*rest["retries"], rest["problem"] or ""]
        assert any(re.search(words, text) for text in read), f"no {words!r} in {read}"
        if rest["state"] != "idle":
            rest = running.go_on().rest
        assert (rest["state"], rest["said"]) == ("idle", "Now."), f"{words!r}: {rest}"


def test_each_fault_behind_litellm_ends_usable_with_its_words_shown(
    api: Api, proxy: Proxy, project: Path, tmp_path: Path
) -> None:
    faults = [*BEHIND_LITELLM, *([MALFORMED] if api == "messages" else [])]
    replies = "".join(f'[[reply]]\n{fault}\n[[reply]]\ntext = "Now."\n' for fault, _ in faults)
    with (
        scripted(replies, tmp_path / "model", proxy.behind),
        emacs(tmp_path / "emacs") as running,
    ):
        running.begin(project, {**proxy.server(api).options(), **RETRYING})
        meet(running, [words for _, words in faults])


def test_each_form_of_a_reply_is_read_through_litellm(
    api: Api, proxy: Proxy, project: Path, tmp_path: Path
) -> None:
    """Both tools run, and an event of ten megabytes is read."""
    replies = "".join(f'[[reply]]\n{CALLS}{form}\n[[reply]]\ntext = " Done."\n' for form in FORMS)
    scenario = f"{replies}[[reply]]\n{BIG}\n"
    with (
        scripted(scenario, tmp_path / "model", proxy.behind) as behind,
        emacs(tmp_path / "emacs") as running,
    ):
        running.begin(project, {**proxy.server(api).options(), **RETRYING})
        for form in FORMS:
            done = running.say(f"Go on: {form}")
            assert (done.rest["state"], done.rest["said"]) == ("idle", "I look. Done."), (
                f"{form}: {done.rest}"
            )
            assert [use["status"] for use in done.uses] == ["success", "success"], form
        assert len(running.say("Now much.").rest["said"]) == 10_000_000
    assert {line["status"] for line in behind.asked()} == {200}


def test_each_fault_of_aimock_ends_usable_with_its_words_shown(
    api: Api, project: Path, tmp_path: Path
) -> None:
    now = {"response": {"content": "Now."}}
    fixtures = [fixture for fault, _ in OF_AIMOCK for fixture in (fault, now)]
    with (
        aimock(fixtures, tmp_path / "aimock") as server,
        emacs(tmp_path / "emacs") as running,
    ):
        running.begin(project, {**Server(server.url, api).options(), **RETRYING})
        meet(running, [words for _, words in OF_AIMOCK])
