"""The sources of settings, in order of precedence, and the errors for mistakes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from efrit_budget.settings import places
from efrit_budget.settings.load import load
from efrit_budget.settings.model import Settings, known_settings
from efrit_budget.settings.sources import SettingsError, variable_of


def failure(**sources: Any) -> str:
    """Return the one line that loading fails with."""
    with pytest.raises(SettingsError) as caught:
        load(**sources)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_without_any_source_every_setting_is_its_default(home: Path) -> None:
    loaded = load()
    assert set(loaded.origins) == set(known_settings())
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.warnings == ()
    assert loaded.settings == Settings()
    assert loaded.settings.storage.database == home / "efrit/state/efrit-budget.sqlite3"
    assert loaded.settings.log.file == home / "efrit/log/efrit-budget.log"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        load().settings.log.max_bytes = 5


def test_every_setting_says_what_it_is() -> None:
    assert all(field.description for field in known_settings().values())


def test_loading_makes_no_folder(home: Path) -> None:
    load(project_root=home)
    assert not (home / "efrit").exists()


def test_a_source_wins_over_those_below_it_and_is_named(config: Path, project: Path) -> None:
    config.write_text("[budget]\ntotal = 90000\nfloor = 400\n[retention]\ndays = 7\n")
    project.write_text("[budget]\ntotal = 80000\nper_tool_default = 7000\n")
    environ = {**os.environ, "EFRIT_BUDGET_BUDGET__FLOOR": "300"}
    environ["EFRIT_BUDGET_LOG__LEVEL"] = "debug"
    overrides = {"log": {"level": "error"}, "wire.max_message_bytes": 2048, "log.max_bytes": None}
    loaded = load(project_root=project.parent, environ=environ, overrides=overrides)
    changed = {key: (loaded.settings.value(key), origin) for key, origin in loaded.origins.items()}
    assert {key: one for key, one in changed.items() if one[1] != "default"} == {
        "budget.total": (80_000, str(project)),
        "budget.per_tool_default": (7_000, str(project)),
        "budget.floor": (300, "environment EFRIT_BUDGET_BUDGET__FLOOR"),
        "retention.days": (7, str(config)),
        "log.level": ("error", "client"),
        "wire.max_message_bytes": (2048, "client"),
    }


def test_the_home_variable_moves_all_three_folders(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[retention]\ndays = 3\n")
    settings = load(environ={"EFRIT_BUDGET_HOME": str(tmp_path)}).settings
    assert settings.retention.days == 3
    assert settings.storage.database.parent == tmp_path / "state"
    assert settings.log.file.parent == tmp_path / "log"


def test_paths_start_at_the_folder_of_the_file_that_names_them(config: Path, home: Path) -> None:
    config.write_text('[storage]\ndatabase = "here.db"\n[tools]\npath = ["mine", "~/tools"]\n')
    settings = load().settings
    assert settings.storage.database == config.parent / "here.db"
    assert settings.tools.path == (config.parent / "mine", home / "tools")


def test_paths_in_variables_and_overrides_start_at_the_current_folder() -> None:
    environ = {**os.environ, "EFRIT_BUDGET_STORAGE__DATABASE": "1979-05-27"}
    loaded = load(environ=environ, overrides={"log.file": "x.log"})
    assert loaded.settings.storage.database == Path.cwd() / "1979-05-27"
    assert loaded.settings.log.file == Path.cwd() / "x.log"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("budget.total", "50_000", 50_000),
        ("budget.low_water", "0.5", 0.5),
        ("tools.prefer_system_rg", "true", True),
        ("tools.deny", '["a", "b"]', ("a", "b")),
        ("budget.per_tool", "{read_file = 5}", {"read_file": 5}),
        ("log.level", "debug", "debug"),
        ("log.level", '"debug"', "debug"),
    ],
)
def test_variables_are_read_as_toml_or_as_strings(key: str, text: str, value: object) -> None:
    loaded = load(environ={**os.environ, variable_of(key): text})
    assert loaded.settings.value(key) == value
    assert loaded.origins[key] == f"environment {variable_of(key)}"


def test_an_empty_variable_is_no_variable() -> None:
    assert load(environ={**os.environ, "EFRIT_BUDGET_LOG__LEVEL": ""}).origins["log.level"] == (
        "default"
    )


def test_a_variable_that_lacks_an_underscore_is_warned_of() -> None:
    (warning,) = load(environ={**os.environ, "EFRIT_BUDGET_LOG_LEVEL": "debug"}).warnings
    assert warning.endswith("the name is EFRIT_BUDGET_LOG__LEVEL")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[budget]\ntotl = 5", "there is no setting budget.totl; the nearest is budget.total"),
        ("[budgte]\ntotal = 5", "there is no setting budgte.total; the nearest is budget.total"),
        ("max_mesage_bytes = 5", "the nearest is wire.max_message_bytes"),
        ("[qqqqqqqq]\nzzzzz = 5", "there is no setting qqqqqqqq.zzzzz"),
        ("budget = 5", "budget: a table of settings is needed"),
        ("[budget]\ntotal = 5", "budget.total = 5: should be greater than or equal to 1000"),
        ("[budget]\ntotal = true", "budget.total = True: should be a valid integer"),
        ('[budget]\ntotal = "9000"', "budget.total = '9000': should be a valid integer"),
        ("[budget]\nlow_water = nan", "budget.low_water = nan"),
        ("[budget]\nper_tool = {a = 0}", "budget.per_tool.a = 0"),
        ("[budget]\nsystem = 50000", "budget: the tiers make 142,000"),
        ("[budget]\nfloor = 9000", "budget: floor 9,000 is above per_tool_default 8,000"),
        ("[log]\nlevel = 'loud'", "log.level = 'loud': should be 'debug', 'info'"),
        ("[tools]\ndeny = 'a'", "tools.deny = 'a': should be a valid list"),
        ("[storage]\ndatabase = ''", "storage.database: '' is not a path"),
        ("[storage]\ndatabase = 5", "storage.database = 5"),
        ("[budget]\n\ntotal = \n", "line 3: not TOML: "),
        ("[budget]\n[budget", "line 2: not TOML: "),
        ("x = " + "[" * 20_000, "too large or nested too deeply"),
    ],
)
def test_a_mistake_of_the_persons_own_names_file_key_and_problem(
    config: Path, text: str, problem: str
) -> None:
    config.write_text(text)
    message = failure()
    assert message.startswith(f"{config}: ")
    assert problem in message


def test_a_file_that_is_not_utf_8_is_named_with_its_line(config: Path) -> None:
    config.write_bytes(b"[budget]\n# \xff\n")
    assert failure() == f"{config}: line 2: not UTF-8"


def test_a_file_that_cannot_be_read_is_named(config: Path) -> None:
    config.mkdir()
    assert failure() == f"{config}: cannot be read: Is a directory"


def test_a_mistake_names_a_variable_or_the_client_as_its_source() -> None:
    environ = {**os.environ, "EFRIT_BUDGET_LOG__LEVLE": "debug"}
    assert failure(environ=environ) == (
        "environment EFRIT_BUDGET_LOG__LEVLE: there is no setting log.levle; "
        "the nearest is log.level"
    )
    assert failure(overrides={"budget": {"total": 5}}).startswith("client: budget.total = 5: ")
    assert failure(overrides={"a.b": 5}, override_origin="command line").startswith("command line")


def test_all_mistakes_are_told_at_once(config: Path) -> None:
    config.write_text("[budget]\ntotal = 5\n[retention]\ndays = -1\n")
    message = failure()
    assert "budget.total" in message
    assert "retention.days" in message


def test_loading_imports_neither_a_toml_parser_nor_difflib_when_there_is_no_need() -> None:
    program = (
        "import sys\nfrom efrit_budget.settings.load import load\nload()\n"
        "assert not {'tomllib', 'difflib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@given(text=st.text(max_size=100))
def test_a_variable_is_taken_or_refused_and_nothing_else(text: str) -> None:
    for key in ("budget.total", "log.level", "tools.deny", "budget.per_tool"):
        origin = f"environment {variable_of(key)}" if text else "default"
        with contextlib.suppress(SettingsError):
            loaded = load(environ={"EFRIT_BUDGET_HOME": os.devnull, variable_of(key): text})
            assert loaded.origins[key] == origin


def test_folders_of_ours_are_private_and_others_stay_as_they_are(
    home: Path, tmp_path: Path
) -> None:
    places.log_folder().mkdir(parents=True, mode=0o755)
    places.private_folder(places.log_folder())
    places.private_folder(places.state_folder() / "deep")
    assert not any(
        folder.stat().st_mode & 0o077
        for folder in (places.log_folder(), places.state_folder(), places.state_folder() / "deep")
    )
    tmp_path.chmod(0o755)
    places.private_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
