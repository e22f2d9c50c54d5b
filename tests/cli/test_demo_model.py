"""`efrit-budget demo-model`."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anthropic import Anthropic
from openai import BadRequestError, OpenAI

from tests.cli.command import TIME_LIMIT, efrit_process
from tests.sidecar import PROGRAM


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command as a process; yield the process and the URL that it printed."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*PROGRAM, "demo-model", *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().rstrip("\n")
        process.terminate()


def ask(url: str, said: str = "Begin.") -> str:
    """Send a message and return the first text of the reply."""
    with Anthropic(base_url=url, api_key="sk-secret-key", max_retries=0) as client:
        message = client.messages.create(
            model="claude-sonnet-5-5",
            max_tokens=1000,
            messages=[{"role": "user", "content": said}],
        )
    text: str = next(block.text for block in message.content if block.type == "text")
    return text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_where_it_listens_answers_and_ends_by_a_signal(number: signal.Signals) -> None:
    with running("--scenario", "tour") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert ask(url).startswith("I will look at the layout")
        process.send_signal(number)
        out, err = process.communicate(timeout=TIME_LIMIT)
    assert (process.returncode, out, err) == (0, "", "playing: a tour of the project\n")


def test_it_ends_when_stdin_closes_if_it_is_told_to() -> None:
    with running("--until-eof", "--quiet") as (process, _):
        out, err = process.communicate(timeout=TIME_LIMIT)
    assert (process.returncode, out, err) == (0, "", "")


def test_it_plays_a_file_and_records_what_it_was_asked(tmp_path: Path) -> None:
    file, record = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    file.write_text('[[reply]]\ntext = "Mine."', encoding="utf-8")
    with running("--scenario", str(file), "--record", str(record), "--factor", "2") as (_, url):
        assert ask(url) == "Mine."
        line = json.loads(record.read_text(encoding="utf-8"))
    assert line["body"]["messages"] == [{"role": "user", "content": "Begin."}]
    assert "sk-secret-key" not in record.read_text(encoding="utf-8")


def test_without_a_key_it_can_be_asked_with_no_key() -> None:
    with running("--no-key") as (_, url):
        asked = {"role": "user", "content": "x"}
        body = json.dumps({"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [asked]})
        curl = ["curl", "-q", "-sS", "-H", "anthropic-version: 2023-06-01", "-d", body]
        done = subprocess.run([*curl, f"{url}/v1/messages"], capture_output=True, check=True)
    assert json.loads(done.stdout)["type"] == "message"


def test_its_options_make_it_another_server(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[reply]]\nthinking = "Hm."\ntext = "Mine."', encoding="utf-8")
    server = ["--scenario", str(file), "--reasoning", "reasoning", "--strict", "no-system-later"]
    models = ["--model", "qwen3:8b", "--window", "8192", "--strict", "no-usage"]
    with (
        running(*server, *models) as (_, url),
        OpenAI(base_url=f"{url}/v1", api_key="sk-secret-key", max_retries=0) as client,
    ):
        listed = client.models.list().data[-1]
        asked = {"role": "user", "content": "Begin."}
        reply = client.chat.completions.create(model="qwen3:8b", messages=[asked])
        with pytest.raises(BadRequestError, match="must be at the beginning"):
            client.chat.completions.create(
                model="qwen3:8b", messages=[asked, {"role": "system", "content": "x"}]
            )
    assert (listed.id, listed.max_model_len) == ("qwen3:8b", 8192)
    assert (reply.choices[0].message.content, reply.choices[0].message.reasoning) == (
        "Mine.",
        "Hm.",
    )
    assert reply.usage is None


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (
            ["--scenario", "nosuch"],
            1,
            "nosuch: no such file, and none of the scenarios greenhouse, long, tour",
        ),
        (["--factor", "0"], 2, "a factor is a number from 0.1 to 10"),
        (["--port", "70000"], 2, "a port is a number from 0 to 65535"),
        (["--window", "5"], 2, "a window is a number of tokens, at least 100"),
        (["--strict", "everything"], 2, "invalid choice: 'everything'"),
    ],
)
def test_a_mistake_is_told_in_a_line(arguments: list[str], code: int, complaint: str) -> None:
    ended = efrit_process("demo-model", *arguments)
    assert ended.code == code
    assert complaint in ended.complaint


def test_a_port_that_is_taken_is_told_in_a_line() -> None:
    with running("--quiet") as (_, url):
        ended = efrit_process("demo-model", "--port", url.rpartition(":")[2])
    assert ended.code == 1
    assert "Address already in use" in ended.complaint
