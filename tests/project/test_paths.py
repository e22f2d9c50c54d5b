"""Tests of names as text, and of paths that must stay inside the project."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from efrit_budget.project.paths import OutsideError, inside, meant_name, same_form, shown_name

NAMES = st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name)
TRICKY = st.text(alphabet='"\\nrt01 7é\u2028\x9b\x7f\n\t', max_size=12)


@given(NAMES)
def test_every_name_of_bytes_comes_back_from_its_shown_form(raw: bytes) -> None:
    name = os.fsdecode(raw)
    assert meant_name(shown_name(name)) == name


@given(TRICKY)
def test_every_name_of_quotes_and_escapes_comes_back_from_its_shown_form(name: str) -> None:
    assert meant_name(shown_name(name)) == name
    assert same_form(shown_name(name)) == shown_name(name)


@given(NAMES, NAMES)
def test_two_names_never_have_the_same_form(one: bytes, other: bytes) -> None:
    same = shown_name(os.fsdecode(one)) == shown_name(os.fsdecode(other))
    assert same == (one == other)


@given(NAMES | TRICKY.map(os.fsencode))
def test_a_shown_name_is_one_line_of_valid_text_without_commands(raw: bytes) -> None:
    shown = shown_name(os.fsdecode(raw))
    assert shown.encode().decode() == shown
    assert len(shown.splitlines()) == 1
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", shown)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
@example('"\\777"')
@example('"\\"')
@example('"')
@example('""')
def test_any_text_means_some_name(text: str) -> None:
    assert isinstance(meant_name(text), str)
    assert meant_name(same_form(text)) == meant_name(text)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain.txt", "plain.txt"),
        ("with space", "with space"),
        ("größe", "größe"),
        ('in"side', 'in"side'),
        ("back\\slash", "back\\slash"),
        ('"quoted"', '"\\"quoted\\""'),
        ("\\leading", '"\\\\leading"'),
        ("new\nline", '"new\\nline"'),
        ("latin\udce9", '"latin\\351"'),
        ("\x1b[31m", '"\\033[31m"'),
        ("csi\x9b", '"csi\\302\\233"'),
        ("", '""'),
        ("filler\u3164", '"filler\\343\\205\\244"'),
        ("\u115f\u2800", '"\\341\\205\\237\\342\\240\\200"'),
        ("note\ufff9\u180e", '"note\\357\\277\\271\\341\\240\\216"'),
        ("gnp\u202e.exe", '"gnp\\342\\200\\256.exe"'),
        ("left\u200e", '"left\\342\\200\\216"'),
        ("§ 3 files.", '"§ 3 files."'),
        ("📏 ~1 tokens", '"📏 ~1 tokens"'),
        ("3 § files", "3 § files"),
    ],
)
def test_names_are_quoted_as_git_does_and_only_when_needed(name: str, shown: str) -> None:
    assert shown_name(name) == shown


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project beside files that it may not reach."""
    (tmp_path / "secret").write_text("xyzzy", encoding="utf-8")
    (tmp_path / "project-other").mkdir()
    root = tmp_path / "project"
    (root / "folder").mkdir(parents=True)
    (root / "file").write_text("text", encoding="utf-8")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to("..")
    (root / "folder" / "up2").symlink_to("../..")
    (root / "in").symlink_to("folder/../file")
    (root / "round").symlink_to("../project/file")
    (root / "loop").symlink_to("loop")
    (root / "loop-a").symlink_to("loop-b")
    (root / "loop-b").symlink_to("loop-a")
    (root / "nowhere").symlink_to("missing")
    (root / "etc").symlink_to("/etc")
    return root


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("file", "file"),
        (".", "."),
        ("./folder/../file", "file"),
        ("in", "file"),
        ("round", "file"),
        ("up/project/file", "file"),
        ("missing", "missing"),
        ("nowhere", "missing"),
        ("folder/", "folder"),
        ("~", "~"),
        ("$HOME", "$HOME"),
    ],
)
def test_what_is_inside_is_found_by_every_way_that_leads_there(
    root: Path, path: str, target: str
) -> None:
    assert inside(root, path) == (root / target).resolve()
    assert inside(root, str(root / path)) == (root / target).resolve()


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../secret",
        "folder/../../secret",
        "out",
        "up",
        "up/secret",
        "folder/up2/secret",
        "etc/passwd",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "../project-other",
        "up/project-other",
        '"..\\057secret"',
        "missing/../../secret",
        "a\0b",
        '"a\\000b"',
        "/dev/fd/0",
    ],
)
def test_nothing_leads_out_of_the_project(root: Path, path: str) -> None:
    with pytest.raises(OutsideError):
        inside(root, path)


@pytest.mark.parametrize("path", ["loop", "loop/x", "loop-a", "loop-b/../file"])
def test_a_loop_of_links_leads_nowhere_and_not_out(root: Path, path: str) -> None:
    try:
        found = inside(root, path)
    except OutsideError:
        return
    assert found.is_relative_to(root)


def test_a_path_that_is_too_long_leads_nowhere_and_not_out(root: Path) -> None:
    for path in ("x" * 5000, "/".join(["x"] * 5000)):
        try:
            assert inside(root, path).is_relative_to(root)
        except OutsideError as error:
            assert error.message  # noqa: PT017


@given(st.lists(st.sampled_from(["..", ".", "a", "link", "up", "", "/", "b"]), max_size=8))
def test_no_walk_leads_out_of_the_project(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "walk" / "project"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root / "link").symlink_to("a/b")
        (root / "a" / "up").symlink_to("../..")
        (root / "up").symlink_to("..")
    try:
        found = inside(root, "/".join(steps) or ".")
    except OutsideError:
        return
    assert found.exists() or not found.is_symlink()
    assert found.is_relative_to(root.resolve())


def test_a_root_that_is_itself_a_link_is_the_folder_it_leads_to(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert inside(tmp_path / "alias", "file") == root / "file"
    assert inside(tmp_path / "alias", str(root / "file")) == root / "file"
    assert inside(tmp_path / "alias", str(tmp_path / "alias" / "file")) == root / "file"


def test_the_reason_names_the_path_in_one_line(root: Path) -> None:
    with pytest.raises(OutsideError) as caught:
        inside(root, "../new\nline")
    assert caught.value.message.startswith('"../new\\nline": outside the project')
