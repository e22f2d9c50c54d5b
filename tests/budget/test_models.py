"""The table of models, and a person's additions to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from genai_prices.data_snapshot import get_snapshot

from efrit_budget.app import open_application
from efrit_budget.budget.endpoint import Endpoint
from efrit_budget.budget.families import CLAUDE, UNKNOWN
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
    assert model.family == UNKNOWN


@pytest.mark.parametrize(
    ("name", "family", "window"),
    [
        ("claude-sonnet-5-5", CLAUDE, 1_000_000),
        ("claude-opus-4-5-20251101", CLAUDE, 200_000),
        ("anthropic/claude-opus-4.6", CLAUDE, 1_000_000),
        ("claude-of-tomorrow", CLAUDE, 200_000),
        ("gpt-5-mini", "o200k", 400_000),
        ("openai/gpt-5", "o200k", 400_000),
        ("gpt-5.3-codex", "o200k", 400_000),
        ("gpt-4.1", "o200k", 1_000_000),
        ("gpt-4o-2024-08-06", "o200k", 128_000),
        ("gpt-4-turbo", "cl100k", 128_000),
        ("gpt-oss:20b", "o200k", 131_072),
        ("o3", "o200k", 200_000),
        ("o4-mini", "o200k", 200_000),
        ("gemini-2.5-pro", "gemma", 1_000_000),
        ("google/gemini-3-flash-preview", "gemma", 1_000_000),
        ("gemma3:4b", "gemma", 131_072),
        ("mistral-large-2512", "mistral", 262_144),
        ("mistralai/Mistral-7B-Instruct-v0.3", UNKNOWN, 32_768),
        ("codestral-latest", "mistral", 256_000),
        ("magistral-medium", "mistral", 40_000),
        ("devstral-2512", "mistral", 262_144),
        ("deepseek-chat", "deepseek", 64_000),
        ("deepseek-reasoner", "deepseek", 64_000),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek", 128_000),
        ("deepseek-r1:8b", "qwen", 64_000),
        ("qwen3:8b", "qwen", 40_960),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen", 32_768),
        ("qwen/qwen3.5-27b", "qwen3.5", 262_144),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3", 128_000),
        ("llama3.1:8b", "llama3", 128_000),
        ("llama3:8b", "llama3", 8_192),
        ("meta-llama/llama-4-scout", "llama4", 131_072),
        ("hf.co/user/SmolLM2-135M-Instruct-GGUF:Q4_K_M", "smollm", 8_192),
        ("x-ai/grok-4", UNKNOWN, 256_000),
        ("z-ai/glm-4.6", UNKNOWN, 128_000),
        ("moonshotai/kimi-k2.5", UNKNOWN, 262_144),
    ],
)
def test_well_known_models_are_known_as_makers_routers_and_local_servers_write_them(
    name: str, family: str, window: int
) -> None:
    model = model_named(name)
    assert (model.name, model.family, model.window) == (name, family, window)
    assert family in (CLAUDE, UNKNOWN) or model.factor == 1.0


MAKERS = {"anthropic", "deepseek", "google", "mistral", "moonshotai", "openai", "x-ai", "zai"}
"""The providers of the price list that make the models they list."""
OTHER_WORK = re.compile("audio|embed|image|live|ocr|realtime|transcribe|tts|voxtral")
"""Matches names of models that are not for conversations in text."""


def listed_windows() -> Iterator[tuple[str, int]]:
    """Yield the models for conversations of all makers with their windows, by the price list."""
    for provider in get_snapshot().providers:
        for model in provider.models if provider.id in MAKERS else ():
            if (model.context_window or 0) >= 8_000 and not OTHER_WORK.search(model.id):
                assert model.context_window is not None
                yield model.id, model.context_window


def test_no_model_of_the_table_has_a_larger_window_than_in_the_price_list() -> None:
    models = {name: replace(model_named(name), name="") for name, _ in listed_windows()}
    known = {name: model for name, model in models.items() if model != model_named("")}
    windows = dict(listed_windows())
    assert not {name for name, model in known.items() if model.window > windows[name]}
    assert len(known) > 100


def test_each_model_of_claude_s_has_the_window_of_the_price_list() -> None:
    listed, names = dict(listed_windows()), known_names()
    windows = {name: model_named(name).window for name in names if name in listed}
    assert windows == {name: listed[name] for name in windows}
    assert len(windows) >= 14


@pytest.mark.parametrize(
    ("tokens", "names"),
    [
        (512, ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-2"]),
        (1_024, ["claude-sonnet-5", "claude-opus-5", "claude-opus-4-8", "claude-sonnet-4-6"]),
        (2_048, ["claude-opus-4-7"]),
        (4_096, ["claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"]),
    ],
)
def test_the_least_prompt_that_is_cached_differs_by_model(tokens: int, names: list[str]) -> None:
    assert {model_named(name).least_cacheable for name in names} == {tokens}


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
        ("[mine]\nfamily = 'martian'", "no family martian; there are claude, o200k"),
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
    assert not {"default", "claude", "gpt-5"} & set(names)
    assert known_names(tmp_path / "none.toml") == names[:-1]


def test_a_window_is_known_from_the_table_the_endpoint_or_the_price_list() -> None:
    assert model_named("claude-opus-5-5").window_known
    unknown = model_named("somebody-s-own")
    assert not unknown.window_known
    assert not Endpoint(provider="somebody").limit(unknown).window_known
    assert Endpoint(window=32_000).limit(unknown).window_known
    listed = model_named("codex-mini")
    assert not listed.window_known
    assert Endpoint(provider="openai").limit(listed).window_known
