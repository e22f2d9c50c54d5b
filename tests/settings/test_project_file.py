"""The effect of an untrusted project's file on a person's settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.settings.load import LoadedSettings, load
from efrit_budget.settings.model import Settings, known_settings
from efrit_budget.settings.project_file import NARROWED


def in_project(project: Path, text: str, **sources: Any) -> LoadedSettings:
    """Load with that text in the project's file."""
    project.write_text(text, encoding="utf-8")
    return load(project_root=project.parent, **sources)


def test_a_project_lowers_numbers_and_adds_denials(config: Path, project: Path) -> None:
    config.write_text('[tools]\ndeny = ["a"]\n[budget.per_tool]\nbig = 9000\n')
    loaded = in_project(
        project,
        "[budget]\ntotal = 50000\nper_tool_default = 4000\nper_tool = {big = 100, new = 7000}\n"
        '[tools]\ndeny = ["b", "a", "b"]\n',
    )
    assert loaded.warnings == ()
    assert loaded.settings.budget.total == 50_000
    assert loaded.settings.budget.per_tool_default == 4_000
    assert loaded.settings.budget.per_tool == {"big": 100, "new": 7_000}
    assert loaded.settings.tools.deny == ("a", "b")
    assert loaded.origins["tools.deny"] == str(project)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[budget]\ntotal = 200000", "budget.total = 200000: a project may only lower it"),
        ("[budget]\nper_tool = {a = 9000}", "budget.per_tool.a = 9000: a project may only lower"),
        ("[budget]\ntotal = -1", "budget.total = -1: a whole number above 0 is needed"),
        ("[budget]\ntotal = true", "budget.total = True: a whole number above 0 is needed"),
        ("[budget]\ntotal = 5", "budget.total is not taken: "),
        ("[budget]\nper_tool_default = 100", "budget.per_tool_default is not taken: "),
        ("[budget]\nper_tool = 5", "budget.per_tool = 5: a table"),
        ("[tools]\ndeny = 'a'", "tools.deny = 'a': a list"),
        ("[tools]\ndeny = [1]", "tools.deny = [1]: a list"),
        ("[tools]\npath = ['evil']", "a project may not set tools.path; it belongs in your own"),
        ("[budget]\nresponse = 1", "a project may not set budget.response; it belongs in your own"),
        ("[storage]\ndatabase = 'x'", "a project may not set storage.database; it belongs"),
        ("[budget]\ntotl = 5", "there is no setting budget.totl; the nearest is budget.total"),
        ("[[nonsense]]", "there is no setting nonsense"),
        ("[budget]\n= 5", "line 2: not TOML: "),
        ("# " + "x" * 70_000, "larger than 64 KiB"),
        ('[budget.per_tool]\n"\\u001b[31m" = -1', r"budget.per_tool.\x1b[31m = -1"),
    ],
)
def test_what_a_project_may_not_do_is_a_warning_and_changes_nothing(
    project: Path, text: str, problem: str
) -> None:
    loaded = in_project(project, text)
    (warning,) = loaded.warnings
    assert warning.startswith(f"{project}: ")
    assert problem in warning
    assert warning.isprintable()
    assert loaded.settings == load().settings


def test_the_good_part_of_a_projects_file_is_taken_beside_the_bad(project: Path) -> None:
    loaded = in_project(project, "[budget]\ntotal = 50000\nfloor = 1\nper_tool = {a = 5, b = 9000}")
    assert len(loaded.warnings) == 2
    assert loaded.settings.budget.total == 50_000
    assert loaded.settings.budget.per_tool == {"a": 5}


def test_a_project_cannot_lower_the_total_below_the_persons_own_tiers(
    config: Path, project: Path
) -> None:
    config.write_text("[budget]\nresponse = 30000\n")
    loaded = in_project(project, "[budget]\ntotal = 20000\n")
    assert loaded.settings.budget.total == 100_000
    assert "the tiers make" in loaded.warnings[0]


def test_a_project_narrows_what_the_person_has_from_every_source(project: Path) -> None:
    environ = {**os.environ, "EFRIT_BUDGET_BUDGET__PER_TOOL_DEFAULT": "2000"}
    text = "[budget]\nper_tool_default = 3000\nper_tool = {a = 3000, b = 1500}\n"
    loaded = in_project(project, text, environ=environ)
    assert loaded.settings.budget.per_tool_default == 2_000
    assert loaded.settings.budget.per_tool == {"b": 1_500}
    assert len(loaded.warnings) == 2


def test_what_the_person_says_in_a_variable_stands_above_the_project(project: Path) -> None:
    environ = {**os.environ, "EFRIT_BUDGET_BUDGET__TOTAL": "90000"}
    loaded = in_project(project, "[budget]\ntotal = 50000\n", environ=environ)
    assert loaded.settings.budget.total == 90_000
    assert loaded.origins["budget.total"].startswith("environment")


def test_a_flood_of_mistakes_is_cut_short(project: Path) -> None:
    loaded = in_project(project, "".join(f"x{number} = 1\n" for number in range(1000)))
    assert len(loaded.warnings) == 21
    assert loaded.warnings[-1].endswith("980 more problems")


def test_a_projects_file_is_not_followed_elsewhere(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text("[budget]\ntotal = 50000\n")
    project.symlink_to(tmp_path / "secret.toml")
    loaded = load(project_root=tmp_path)
    assert "symbolic link" in loaded.warnings[0]
    assert loaded.settings.budget.total == 100_000


def test_a_projects_file_that_is_a_pipe_does_not_hang(project: Path) -> None:
    os.mkfifo(project)
    assert "not a regular file" in load(project_root=project.parent).warnings[0]


def test_a_project_without_a_file_or_without_a_folder_is_fine(tmp_path: Path) -> None:
    assert load(project_root=tmp_path).warnings == ()
    assert load(project_root=tmp_path / "nowhere").warnings == ()


TOOLS = ("read_file", "grep", "x y", "\N{SNOWMAN}")
NUMBERS = st.integers(-10, 300_000) | st.integers(900, 9_000)
SCALARS = (
    NUMBERS
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("aZ_. =[]{}\"'\\\n\x1b\N{SNOWMAN}", max_size=9)
)
VALUES = SCALARS | st.lists(st.sampled_from(TOOLS) | SCALARS, max_size=4)
PER_TOOL = st.dictionaries(st.sampled_from(TOOLS), SCALARS, max_size=4)
NARROWABLE = st.sampled_from(sorted(NARROWED))
KEYS = NARROWABLE | st.sampled_from(sorted(known_settings())) | st.just("budget.nonsense")
PROJECTS = st.dictionaries(KEYS, VALUES | PER_TOOL | NUMBERS, max_size=8)
OWN = st.fixed_dictionaries(
    {},
    optional={
        "budget.total": st.integers(20_000, 200_000),
        "budget.per_tool_default": st.integers(500, 20_000),
        "budget.per_tool": st.dictionaries(st.sampled_from(TOOLS), st.integers(1, 20_000)),
        "budget.history": st.integers(0, 2_000),
        "tools.deny": st.lists(st.sampled_from(TOOLS), max_size=2),
    },
)


def as_toml(values: Mapping[str, Any]) -> str:
    """Return a file that gives those values by dotted key."""
    return "".join(f"{key} = {_literal(value)}\n" for key, value in values.items())


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(name)} = {_literal(one)}" for name, one in value.items())
        return f"{{{pairs}}}"
    return json.dumps(value, ensure_ascii=False)


def assert_not_wider(own: Settings, narrowed: Settings) -> None:
    """Fail if a project allowed anything that the person had not allowed."""
    assert narrowed.budget.total <= own.budget.total
    assert narrowed.budget.per_tool_default <= own.budget.per_tool_default
    for tool in {*TOOLS, *own.budget.per_tool, *narrowed.budget.per_tool}:
        before = own.budget.per_tool.get(tool, own.budget.per_tool_default)
        after = narrowed.budget.per_tool.get(tool, narrowed.budget.per_tool_default)
        assert after <= before
    assert set(narrowed.tools.deny) >= set(own.tools.deny)
    for key in set(known_settings()) - NARROWED:
        assert narrowed.value(key) == own.value(key)


@pytest.fixture(scope="module")
def junkyard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a person and a project, reused by all examples."""
    folder = tmp_path_factory.mktemp("junkyard")
    (folder / "config").mkdir()
    return folder


@given(own=OWN, theirs=PROJECTS)
def test_no_project_ever_widens_anything(
    junkyard: Path, own: Mapping[str, Any], theirs: Mapping[str, Any]
) -> None:
    environ = {"EFRIT_BUDGET_HOME": str(junkyard)}
    (junkyard / "config" / "config.toml").write_text(as_toml(own), encoding="utf-8")
    (junkyard / ".efrit.toml").write_text(as_toml(theirs), encoding="utf-8")
    before = load(environ=environ).settings
    loaded = load(project_root=junkyard, environ=environ)
    assert_not_wider(before, loaded.settings)
    assert all(warning.isprintable() for warning in loaded.warnings)


@given(junk=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_junk_in_a_projects_file_never_keeps_the_sidecar_from_starting(
    junkyard: Path, junk: bytes
) -> None:
    environ = {"EFRIT_BUDGET_HOME": str(junkyard / "nobody")}
    (junkyard / ".efrit.toml").write_bytes(junk)
    loaded = load(project_root=junkyard, environ=environ)
    assert_not_wider(load(environ=environ).settings, loaded.settings)
