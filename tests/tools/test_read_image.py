"""Tests of `read_image`, through the whole sidecar."""

from __future__ import annotations

import base64
import io
import os
import random
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from efrit_budget.project import images
from tests.connection import Connection
from tests.conversation.client import Client, text, tool_use
from tests.sidecar import Sidecar

See = Callable[..., dict[str, Any]]


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Return a picture that compresses badly."""
    channels = len(Image.new(mode, (1, 1)).getbands())
    return Image.frombytes(
        mode, (width, height), random.Random(1).randbytes(width * height * channels)
    )


def saved(picture: Image.Image, path: Path, **options: Any) -> Path:
    """Write a picture in the format of its file name and return its path."""
    picture.save(path, **options)
    return path


@pytest.fixture
def see(sidecar: Connection, session: str) -> See:
    """Call the tool."""
    uses = iter(range(1000))

    def call(path: str, **params: Any) -> dict[str, Any]:
        arguments = {"path": path, **params.pop("arguments", {})}
        use = params.pop("tool_use_id", f"use-{next(uses)}")
        return sidecar.call_tool(session, "read_image", use, arguments, **params)

    return call


def picture_of(envelope: dict[str, Any]) -> Image.Image:
    """Return the picture in an envelope."""
    source = envelope["content"][0]["source"]
    picture = Image.open(io.BytesIO(base64.b64decode(source["data"])))
    assert source["media_type"] == f"image/{(picture.format or '').lower()}"
    return picture


def test_a_small_image_is_shown_as_it_is(see: See, project: Path) -> None:
    file = saved(noise(30, 20), project / "größe 1.png")
    envelope = see("größe 1.png")
    assert envelope["status"] == "success"
    assert base64.b64decode(envelope["content"][0]["source"]["data"]) == file.read_bytes()
    assert envelope["content"][1] == {"type": "text", "text": envelope["text"]}
    assert envelope["text"].startswith(
        f"größe 1.png: PNG 30x20, {file.stat().st_size:,} bytes, sha"
    )
    assert envelope["data"]["image_tokens"] == 1


def test_a_large_image_is_scaled_down_to_what_the_model_looks_at(see: See, project: Path) -> None:
    saved(Image.new("RGB", (4000, 1000), "navy"), project / "wide.png")
    envelope = see("wide.png")
    assert picture_of(envelope).size == (1568, 392)
    assert ", shown at 1568x392, " in envelope["text"]
    assert envelope["data"]["image_tokens"] == 820
    assert 820 < envelope["tokens"] < 920


def test_an_image_is_scaled_down_to_its_allowance(see: See, project: Path) -> None:
    saved(Image.new("RGB", (1000, 1000), "navy"), project / "large.png")
    envelope = see("large.png", arguments={"max_tokens": "300"})
    assert envelope["tokens"] <= 300
    assert 150 <= envelope["data"]["image_tokens"] <= 180
    assert picture_of(envelope).size[0] == envelope["data"]["shown_width"] < 400


def test_an_allowance_without_room_for_an_image_says_what_it_needs(see: See, project: Path) -> None:
    saved(noise(30, 20), project / "a.png")
    envelope = see("a.png", arguments={"max_tokens": 100})
    assert (envelope["status"], "content" in envelope) == ("error", False)
    assert "150 tokens" in envelope["text"]


@pytest.mark.parametrize("name", ["a.bmp", "a.tiff", "a.ico", "a.ppm", "a.tga"])
def test_a_format_that_the_api_does_not_take_becomes_one_that_it_does(
    see: See, project: Path, name: str
) -> None:
    saved(noise(64, 64), project / name)
    envelope = see(name)
    assert picture_of(envelope).format == "PNG"
    assert picture_of(envelope).size == (64, 64)


@pytest.mark.parametrize("name", ["a.jpg", "a.gif", "a.webp"])
def test_a_format_that_the_api_takes_stays(see: See, project: Path, name: str) -> None:
    file = saved(noise(64, 64).convert("P" if name == "a.gif" else "RGB"), project / name)
    envelope = see(name)
    assert base64.b64decode(envelope["content"][0]["source"]["data"]) == file.read_bytes()


def test_a_picture_of_many_bytes_is_written_with_some_loss(see: See, project: Path) -> None:
    saved(noise(1090, 1090), project / "noise.bmp")
    envelope = see("noise.bmp")
    assert picture_of(envelope).format == "JPEG"
    assert len(envelope["content"][0]["source"]["data"]) < 5_000_000


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I", "F"])
def test_every_kind_of_pixels_can_be_scaled(see: See, project: Path, mode: str) -> None:
    saved(Image.new(mode, (1700, 10)), project / "a.tiff")
    assert picture_of(see("a.tiff")).width == 1568


@pytest.mark.parametrize(
    ("name", "raw", "problem"),
    [
        ("text.png", b"no image at all", "not an image of a known kind"),
        ("empty.png", b"", "not an image of a known kind"),
        ("picture.svg", b"<svg xmlns='x'/>", "read_file"),
        ("cut.bmp", b"BM" + b"\0" * 10, ""),
    ],
)
def test_what_is_no_image_says_so(
    see: See, project: Path, name: str, raw: bytes, problem: str
) -> None:
    (project / name).write_bytes(raw)
    envelope = see(name)
    assert envelope["status"] == "error"
    assert problem in envelope["text"]


def test_a_damaged_image_says_so(see: See, project: Path) -> None:
    file = saved(noise(2000, 500), project / "a.png")
    file.write_bytes(file.read_bytes()[:5000])
    envelope = see("a.png")
    assert envelope["status"] == "error"
    assert "damaged" in envelope["text"]


def test_an_image_that_would_fill_the_memory_is_not_decoded(see: See, project: Path) -> None:
    saved(Image.new("1", (30_000, 30_000)), project / "bomb.png")
    envelope = see("bomb.png")
    assert envelope["status"] == "error"
    assert "30,000x30,000 pixels" in envelope["text"]


def icon(picture: bytes) -> bytes:
    """Return an icon with one picture, whose entry gives no size."""
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(picture), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + picture


def bitmap(width: int, height: int) -> bytes:
    """Return the header of an uncompressed picture in an icon."""
    return struct.pack("<IiiHHIIiiII", 40, width, height, 1, 32, 0, 0, 0, 0, 0, 0)


def test_an_icon_is_shown_and_one_whose_picture_would_fill_the_memory_is_not_decoded(
    see: See, project: Path
) -> None:
    for side in (300, 30_000):
        picture = io.BytesIO()
        Image.new("1", (side, side)).save(picture, "PNG")
        (project / f"{side}.ico").write_bytes(icon(picture.getvalue()))
    saved(noise(32, 32, "RGBA"), project / "old.ico", bitmap_format="bmp")
    (project / "enormous.ico").write_bytes(icon(bitmap(30_000, 60_000)))
    assert picture_of(see("300.ico")).size == (300, 300)
    assert picture_of(see("old.ico")).size == (32, 32)
    for name in ("30000.ico", "enormous.ico"):
        envelope = see(name)
        assert envelope["status"] == "error"
        assert "30,000x" in envelope["text"]


def test_what_a_decoder_keeps_beside_the_pixels_counts(
    see: See, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MOST_DECODING_BYTES", 5 * 2000 * 2000)
    picture = Image.new("RGB", (2000, 2000))
    for name, options in {
        "plain.png": {},
        "plain.jpg": {},
        "late.jpg": {"progressive": True, "subsampling": 0},
        "a.webp": {},
        "a.gif": {},
    }.items():
        saved(picture, project / name, **options)
    shown = {path.name for path in project.iterdir() if see(path.name)["status"] == "success"}
    assert shown == {"plain.png", "plain.jpg"}
    assert "pixels" in see("late.jpg")["text"]


def test_two_images_are_decoded_at_once(
    sidecar: Connection, session: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work: list[int] = []
    scaled, lock, running = images._scale, threading.Lock(), [0]

    def watched(image: Image.Image, wanted: tuple[int, int]) -> Image.Image:
        with lock:
            running[0] += 1
            at_work.append(running[0])
        try:
            return scaled(image, wanted)
        finally:
            with lock:
                running[0] -= 1

    monkeypatch.setattr(images, "_scale", watched)
    for number in range(8):
        saved(noise(1800 + number, 500), project / f"{number}.bmp")
    begun = [
        sidecar.begin(
            "tools/call",
            session_id=session,
            name="read_image",
            arguments={"path": f"{number}.bmp", "max_tokens": 300},
            tool_use_id=f"use-{number}",
        )
        for number in range(8)
    ]
    assert {sidecar.result(number)["status"] for number in begun} == {"success"}
    assert len(at_work) == 8
    assert max(at_work) <= 2


@pytest.mark.process
@pytest.mark.soak(alone=True)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the most that was used")
def test_the_sidecar_stays_below_400_megabytes(
    sidecar: Sidecar, session: str, project: Path
) -> None:
    for number in range(16):
        saved(Image.new("RGBA", (7000, 7000)), project / f"{number}.png")
    saved(Image.new("RGB", (6000, 5500)), project / "16.jpg", progressive=True)
    saved(Image.new("RGB", (3600, 3600)), project / "17.webp")
    saved(Image.new("RGB", (50_000, 1000)), project / "18.png")
    begun = [
        sidecar.begin(
            "tools/call",
            session_id=session,
            name="read_image",
            arguments={"path": path.name, "max_tokens": 300},
            tool_use_id=path.name,
        )
        for path in sorted(project.iterdir())
    ]
    assert {sidecar.result(number)["status"] for number in begun} == {"success"}
    status = Path(f"/proc/{sidecar.process.pid}/status").read_text(encoding="utf-8")
    most = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(most.split()[1]) <= 400_000


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR])
def test_what_is_no_file_is_not_opened(see: See, project: Path, kind: int) -> None:
    try:
        os.mknod(project / "a.png", kind | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert "is not a file" in see("a.png")["message"]


@pytest.mark.parametrize("path", ["missing.png", ".", "../outside.png", "link.png"])
def test_what_cannot_be_read_says_why(see: See, project: Path, path: str) -> None:
    saved(noise(3, 3), project.parent / "outside.png")
    (project / "link.png").symlink_to("../outside.png")
    envelope = see(path)
    assert envelope["status"] == "error"
    assert "content" not in envelope


def test_an_image_among_secrets_is_shown_when_the_person_agrees(see: See, project: Path) -> None:
    (project / ".ssh").mkdir()
    saved(noise(3, 3), project / ".ssh" / "code.png")
    asked = see(".ssh/code.png", tool_use_id="same")
    assert asked["status"] == "needs_confirmation"
    assert ".ssh/code.png usually holds secrets" in asked["confirm"]["question"]
    shown = see(".ssh/code.png", tool_use_id="same", confirm_id=asked["confirm"]["id"])
    assert picture_of(shown).size == (3, 3)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client with a conversation."""
    made = Client(tmp_path, configured={"tools.deny": []})
    yield made
    made.close()


def test_the_image_stands_in_the_conversation_until_it_gives_way_and_can_be_recalled(
    client: Client,
) -> None:
    saved(Image.new("RGB", (750, 400), "navy"), client.root / "a.png")
    client.begin("Look.")
    client.end(tool_use("a", "read_image", path="a.png"))
    envelope = client.call(
        "tools/call", name="read_image", arguments={"path": "a.png"}, tool_use_id="a"
    )
    client.begin()
    (result,) = client.messages[-1]["content"]
    assert result["content"] == envelope["content"]
    used = client.budget()["tiers"]["tool_results"]["used"]
    assert used - 16 == envelope["tokens"] > 400
    client.end(text("Blue."))
    client.call("worklog/drop", handle=envelope["handle"])
    client.begin("Again.")
    assert "image" not in str(client.messages[2]["content"][0]["content"][0]["type"])
    assert client.budget()["tiers"]["tool_results"]["used"] == 0
    client.end(tool_use("b", "recall_result", handle=envelope["handle"]))
    recalled = client.call(
        "tools/call", name="recall_result", arguments={"handle": "r1"}, tool_use_id="b"
    )
    assert recalled["content"][0] == envelope["content"][0]


def test_the_same_image_again_is_a_line(client: Client) -> None:
    saved(Image.new("RGB", (750, 400), "navy"), client.root / "a.png")
    client.begin("Look twice.")
    client.end(*(tool_use(use, "read_image", path="a.png") for use in "ab"))
    envelopes = [
        client.call("tools/call", name="read_image", arguments={"path": "a.png"}, tool_use_id=use)
        for use in "ab"
    ]
    assert "content" not in envelopes[1]
    assert envelopes[1]["text"].startswith("§ Same as r1")
    assert envelopes[1]["tokens"] < 50
