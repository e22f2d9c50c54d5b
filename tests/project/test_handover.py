"""Texts that a client leaves in files: those that are taken, and those that are refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from efrit_budget.project import handover
from efrit_budget.project.handover import HandoverError, take_text
from tests.connection import Connection, RpcError
from tests.local_sidecar import LocalSidecar


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a client creates it."""
    made = tmp_path / "left"
    made.mkdir(mode=0o700)
    return made


def left(folder: Path, text: str | bytes, name: str = "one") -> Path:
    """Write a file as a client leaves it."""
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o600)
    return file


def test_a_text_is_taken_as_it_is_and_its_file_is_gone(folder: Path) -> None:
    file = left(folder, "Größe\r\n🧮\0\n")
    assert take_text(folder, "one") == "Größe\r\n🧮\0\n"
    assert not file.exists()


def test_what_is_no_utf_8_is_replaced(folder: Path) -> None:
    left(folder, b"before \xff after")
    assert take_text(folder, "one") == "before \ufffd after"


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "/etc/passwd", "a/b", "one\0"])
def test_a_name_that_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    left(folder.parent, "not for you", "other")
    with pytest.raises(HandoverError, match="bare name"):
        take_text(folder, name)
    assert (folder.parent / "other").exists()


def test_a_link_is_not_followed_and_a_file_of_two_names_not_taken(folder: Path) -> None:
    other = left(folder.parent, "not for you", "other")
    (folder / "link").symlink_to(other)
    os.link(other, folder / "hard")
    for name in ("link", "hard"):
        with pytest.raises(HandoverError):
            take_text(folder, name)
    assert other.read_text(encoding="utf-8") == "not for you"


def test_only_regular_files_are_taken_and_no_pipe_is_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "inner").mkdir(mode=0o700)
    for name in ("pipe", "inner", "missing"):
        with pytest.raises(HandoverError):
            take_text(folder, name)


def test_what_others_can_read_is_not_taken(folder: Path) -> None:
    file = left(folder, "text")
    file.chmod(0o644)
    with pytest.raises(HandoverError, match="the file"):
        take_text(folder, "one")
    file.chmod(0o600)
    folder.chmod(0o755)
    with pytest.raises(HandoverError, match="the folder"):
        take_text(folder, "one")
    assert file.exists()


def test_a_folder_that_is_a_link_is_refused(folder: Path) -> None:
    left(folder, "text")
    link = folder.with_name("link")
    link.symlink_to(folder)
    with pytest.raises(HandoverError, match="the folder"):
        take_text(link, "one")


def test_a_file_that_is_too_long_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "MOST_BYTES", 3)
    left(folder, "text")
    with pytest.raises(HandoverError, match="more than 3 bytes"):
        take_text(folder, "one")


# On the wire


def greet(sidecar: Connection, **members: Any) -> None:
    """Begin the connection as a client does."""
    sidecar.request("initialize", client={"name": "t", "version": "1"}, **members)


def read(sidecar: Connection, session: str, use: str) -> Any:
    """Return the lines of the file as the model would read them."""
    arguments = {"path": "a"}
    params = {"session_id": session, "name": "read_file", "arguments": arguments}
    return sidecar.request("tools/call", tool_use_id=use, **params)["data"]["lines"]


def test_a_buffer_left_in_a_file_is_in_force_for_the_next_request(
    sidecar: Connection, project: Path, folder: Path
) -> None:
    greet(sidecar, handover_folder=str(folder))
    session = sidecar.request("session/open", root=str(project))["session_id"]
    file = left(folder, "line\n" * 400_000 + "the end")
    sidecar.notify("buffers/sync", session_id=session, path="a", text_file="one")
    assert read(sidecar, session, "1")[0] == "line"
    assert not file.exists()
    sidecar.notify("buffers/sync", session_id=session, path="a", text="short")
    assert read(sidecar, session, "2") == ["short"]


def test_without_a_folder_in_the_greeting_no_file_is_taken(
    sidecar: Connection, session: str, folder: Path
) -> None:
    file = left(folder, "text")
    for name in ("one", str(file)):
        with pytest.raises(RpcError, match="no handover_folder"):
            sidecar.request("buffers/sync", session_id=session, path="a", text_file=name)
    assert file.exists()


def test_a_text_and_a_file_exclude_each_other_and_one_is_needed(
    sidecar: Connection, session: str
) -> None:
    for given in ({"text": "a", "text_file": "b"}, {}):
        with pytest.raises(RpcError, match="text"):
            sidecar.request("buffers/sync", session_id=session, path="a", **given)


@pytest.mark.parametrize("folder", ["relative", "", 1, ["/tmp"], "/a\0b"])
def test_a_folder_that_is_no_absolute_path_is_refused(tools_for_tests: Path, folder: Any) -> None:
    with LocalSidecar() as sidecar, pytest.raises(RpcError, match="handover_folder"):
        greet(sidecar, handover_folder=folder)
