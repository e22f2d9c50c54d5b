"""The table of models, and a person's additions to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from efrit_budget.app import open_application
from efrit_budget.budget.endpoint import Endpoint
from efrit_budget.budget.models import ModelTableError, known_names, model_named
from efrit_budget.settings.load import load
from efrit_budget.settings.places import config_folder


def test_the_longest_entry_that_begins_a_name_counts() -> None:
    assert model_named("claude-sonnet-5-5-20261001").system_messages
    assert not model_named("claude-sonnet-5-20260101").system_messages


def test_the_newer_tokenizer_starts_at_its_larger_factor() -> None:
    assert model_named("claude-opus-4-7").factor == 1.3
    assert model_named("claude-sonnet-4-6").factor == 1.0


def test_an_unknown_model_gets_safe_defaults() -> None:
    model = model_named("llama-local")
    assert (model.system_messages, model.binding, model.factor) == (False, True, 1.3)


def test_a_person_adds_models_and_changes_values_of_those_there_are(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[mine]\nwindow = 32_000\n["claude-sonnet-5-5"]\nfactor = 2\n', "utf-8")
    assert model_named("mine-7b", file).window == 32_000
    assert not model_named("mine-7b", file).system_messages
    changed = model_named("claude-sonnet-5-5", file)
    assert (changed.factor, changed.window) == (2, 1_000_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mine]\nwindoww = 5", "no value windoww"),
        ("[mine]\nwindow = 'big'", "window must be int"),
        ("[mine]\nsystem_messages = 1", "system_messages must be bool"),
        ("[mine]\nwindow = true", "window must be int"),
        ("mine = 5", "mine is not a table"),
        ("[mine", "models.toml"),
        ("[mine]\nwindow = 5", "window must be from 1,000 to 1,000,000,000"),
        ("[mine]\nfactor = 0", "factor must be from 0.5 to 2.5"),
        ("[mine]\nfactor = nan", "factor must be from 0.5 to 2.5"),
        ("[claude-5.5]\nwindow = 5_000", "claude-5: no value 5; there are window, max_output"),
    ],
)
def test_a_table_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "models.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(ModelTableError, match=said):
        model_named("mine", file)


def test_entries_of_a_person_stand_on_the_more_general_ones_in_whatever_order(
    tmp_path: Path,
) -> None:
    file = tmp_path / "models.toml"
    file.write_text(
        "[mine-large]\nwindow = 64_000\n[mine]\nfactor = 2.0\n[default]\nmax_output = 9_000\n",
        "utf-8",
    )
    large = model_named("mine-large-2", file)
    assert (large.window, large.factor, large.max_output) == (64_000, 2.0, 9_000)
    assert model_named("other", file).max_output == 9_000


def test_a_mistake_in_a_person_s_table_is_told_where_a_session_is_opened(
    home: Path, tmp_path: Path
) -> None:
    folder = config_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "models.toml").write_text("[mine]\nwindoww = 5\n", "utf-8")
    application = open_application(load())
    with pytest.raises(ModelTableError, match=r"models\.toml: mine: no value windoww"):
        application.call("session/open", {"root": str(tmp_path)})
    application.close()


def test_a_person_s_model_is_in_force_in_a_session(home: Path, tmp_path: Path) -> None:
    folder = config_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "models.toml").write_text("[mine]\nmax_output = 2_000\nfactor = 1.7\n", "utf-8")
    application = open_application(load())
    session = application.call("session/open", {"root": str(tmp_path)})["session_id"]
    params = {"session_id": session, "model": "mine-7b", "user_message": "Hello."}
    begun = application.call("turn/begin", params)
    assert begun["max_tokens"] == 2_000
    assert begun["budget"]["calibration"]["factor"] == 1.7
    application.close()


def test_the_known_names_are_those_of_the_table_and_of_the_person(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text("[mine]\nwindow = 32_000\n[default]\nwindow = 64_000\n", "utf-8")
    names = known_names(file)
    assert names[-1] == "mine"
    assert "claude-sonnet-5-5" in names
    assert "default" not in names
    assert known_names(tmp_path / "none.toml") == names[:-1]


def test_a_window_is_known_from_the_table_the_endpoint_or_the_price_list() -> None:
    assert model_named("claude-opus-5-5").window_known
    unknown = model_named("somebody-s-own")
    assert not unknown.window_known
    assert not Endpoint(provider="somebody").limit(unknown).window_known
    assert Endpoint(window=32_000).limit(unknown).window_known
    listed = model_named("gpt-5")
    assert not listed.window_known
    assert Endpoint(provider="openai").limit(listed).window_known
