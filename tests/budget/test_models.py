"""The table of models, and a person's additions to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from efrit_budget.budget.models import ModelTableError, model_named


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
    ],
)
def test_a_table_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "models.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(ModelTableError, match=said):
        model_named("mine", file)
