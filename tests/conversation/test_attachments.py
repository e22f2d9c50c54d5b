"""Files attached to the person's message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.conversation.client import Client, text


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client with a small budget: 2,000 tokens for user messages."""
    made = Client(tmp_path, total=20_000)
    yield made
    made.close()


def attach(client: Client, *paths: str, **params: Any) -> list[dict[str, Any]]:
    """Return the attachments made of these paths."""
    found: list[dict[str, Any]] = client.call("files/attach", paths=list(paths), **params)[
        "attachments"
    ]
    return found


def test_a_text_is_attached_with_its_lines_numbered(client: Client) -> None:
    (client.root / "a.txt").write_text("one\ntwo\n", "utf-8")
    (made,) = attach(client, "a.txt")
    assert made["blocks"] == [
        text(f"[Attached file a.txt, 2 lines, ~{made['tokens']} tokens:]\n1\tone\n2\ttwo")
    ]
    assert (made["path"], made["facts"], made["cut"]) == ("a.txt", "2 lines", False)
    assert 10 < made["tokens"] < 60
    assert "blocks" not in attach(client, "a.txt", blocks=False)[0]


def test_of_a_long_text_the_beginning_is_attached_and_fits_its_tier(client: Client) -> None:
    lines = "".join(f"line {number} of a long file\n" for number in range(1, 1_001))
    (client.root / "long.txt").write_text(lines, "utf-8")
    said = "Shorten it."
    (made,) = attach(client, "long.txt", beside=[said])
    last = int(made["facts"].removeprefix("lines 1-").split()[0])
    assert made["facts"] == f"lines 1-{last} of 1,000"
    assert made["cut"]
    end = made["blocks"][0]["text"].splitlines()[-2:]
    assert end == [
        f"{last}\tline {last} of a long file",
        f"[This is the beginning of long.txt; read_file with start_line {last + 1} reads on.]",
    ]
    begun = client.begin([*made["blocks"], text(said)])
    tier = begun["budget"]["tiers"]["user_message"]
    assert tier["limit"] * 0.8 < tier["used"] <= tier["limit"]
    assert begun["notes"] == []


def test_several_files_share_the_room(client: Client) -> None:
    for name in "ab":
        (client.root / f"{name}.txt").write_text("some words on a line\n" * 1_000, "utf-8")
    (client.root / "c.txt").write_text("short\n", "utf-8")
    first, second, third = attach(client, "a.txt", "b.txt", "c.txt")
    assert first["cut"]
    assert second["cut"]
    assert not third["cut"]
    used = client.begin([*first["blocks"], *second["blocks"], *third["blocks"], text("Go.")])
    assert used["notes"] == []


def test_a_file_that_may_hold_secrets_is_attached_once_the_person_agreed(client: Client) -> None:
    (client.root / ".env").write_text("KEY=1\n", "utf-8")
    (asked,) = attach(client, ".env")
    assert asked["question"] == "Attach .env? Files of this name usually hold secrets."
    assert asked["blocks"] == []
    assert "KEY=1" in attach(client, ".env", confirmed=[".env"])[0]["blocks"][0]["text"]


@pytest.mark.parametrize(
    "path", ["../other", "/etc/hostname", "link", "gone.txt", "folder", "a.bin"]
)
def test_what_is_no_file_of_the_project_has_a_problem(client: Client, path: str) -> None:
    (client.root / "link").symlink_to("/etc/hostname")
    (client.root / "folder").mkdir()
    (client.root / "a.bin").write_bytes(b"\0\1\2\3" * 100)
    (made,) = attach(client, path)
    assert made["problem"].startswith(path)
    assert made["blocks"] == []


def test_an_unsaved_buffer_is_attached_as_it_is(client: Client) -> None:
    (client.root / "a.txt").write_text("one\n", "utf-8")
    client.call("buffers/sync", path="a.txt", text="two\n")
    (made,) = attach(client, "a.txt")
    assert made["facts"] == "1 line, not saved"
    assert made["blocks"][0]["text"].endswith("\n1\ttwo")


@pytest.mark.parametrize("kind", ["png", "jpg", "webp", "gif"])
def test_an_image_is_attached_as_an_image_block(tmp_path: Path, kind: str) -> None:
    client = Client(tmp_path, total=60_000)
    Image.new("RGB", (40, 30), "red").save(client.root / f"shot.{kind}")
    (made,) = attach(client, f"shot.{kind}")
    heading, image = made["blocks"]
    assert heading["text"].startswith(f"[Attached image shot.{kind}, ")
    assert " 40x30, ~2,080 tokens:]" in heading["text"]
    assert attach(client, f"shot.{kind}", blocks=False)[0]["tokens"] == 2_080
    assert image["type"] == "image"
    assert image["source"]["media_type"] == f"image/{'jpeg' if kind == 'jpg' else kind}"
    assert made["tokens"] > 1_600
    begun = client.begin([*made["blocks"], text("What is it?")])
    assert image in begun["append"]["messages"][0]["content"]
    client.close()


def test_an_image_that_finds_no_room_is_not_attached(client: Client) -> None:
    Image.new("RGB", (40, 30), "red").save(client.root / "shot.png")
    (made,) = attach(client, "shot.png")
    assert (
        "an image takes up to 2,080 tokens, and the message has room for 2,000" in made["problem"]
    )


def test_a_damaged_image_has_a_problem(client: Client) -> None:
    (client.root / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    (made,) = attach(client, "shot.png")
    assert made["problem"].startswith("shot.png: ")
