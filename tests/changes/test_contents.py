"""The contents that come with the check of a path, for the plan of an edit."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from typing import Any

from tests.changes.hands import Hands

MOST = 1_000


def checked(hands: Hands, path: str, *known: str) -> dict[str, Any]:
    """Return the check of one path with its contents."""
    contents = {"most_bytes": MOST, "known": list(known)}
    found: dict[str, Any] = hands("check", paths=[path], contents=contents)["files"][0]
    return found


def test_the_bytes_of_a_file_come_as_they_are(hands: Hands) -> None:
    data = b"one \xff\r\ntwo\0" + bytes(range(1, 256))
    (hands.project / "a").write_bytes(b"\xff\xfe" + "größe\n".encode("utf-16-le"))
    (hands.project / "b").write_bytes(b"x" * 9_00 + data[:80].replace(b"\0", b""))
    for name in "ab":
        found, held = checked(hands, name), (hands.project / name).read_bytes()
        assert b64decode(found["content"]) == held
        assert found["sha256"] == hashlib.sha256(held).hexdigest()


def test_a_content_that_the_client_has_is_not_sent_again(hands: Hands) -> None:
    (hands.project / "a").write_text("one")
    first = checked(hands, "a")
    again = checked(hands, "a", first["sha256"])
    assert again == first | {"content": None}


def test_no_content_comes_of_a_binary_or_a_large_file_and_of_none(hands: Hands) -> None:
    (hands.project / "binary").write_bytes(b"a\0b")
    (hands.project / "large").write_bytes(b"a" * (MOST + 1))
    assert checked(hands, "binary")["content"] is None
    large = checked(hands, "large")
    assert large["size"] == MOST + 1
    assert "content" not in large
    assert "content" not in checked(hands, "missing")


def test_the_lock_of_another_emacs_is_named(hands: Hands) -> None:
    (hands.project / "a").write_text("one")
    (hands.project / ".#a").symlink_to("ann@there.77:1")
    assert checked(hands, "a")["lock"] == "ann@there.77:1"
