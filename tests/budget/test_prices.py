"""The prices of replies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from efrit_budget.budget.prices import dollars

MILLION = 1_000_000


def test_reading_from_cache_is_cheaper_than_reading_anew_and_writing_dearer() -> None:
    anew = dollars("claude-sonnet-4-6", {"input_tokens": MILLION})
    read = dollars("claude-sonnet-4-6", {"cache_read_input_tokens": MILLION})
    written = dollars("claude-sonnet-4-6", {"cache_creation_input_tokens": MILLION})
    assert anew is not None
    assert read == pytest.approx(anew * 0.1)
    assert written == pytest.approx(anew * 1.25)


def test_kinds_of_tokens_add_up() -> None:
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": 9_000, "output_tokens": 500}
    parts = [dollars("claude-sonnet-4-6", {name: count}) for name, count in usage.items()]
    assert dollars("claude-sonnet-4-6", usage) == pytest.approx(sum(p or 0 for p in parts))


def test_a_model_without_a_known_price_has_none() -> None:
    assert dollars("llama-local", {"input_tokens": 5}) is None


def test_the_price_list_is_loaded_only_when_a_price_is_asked_for() -> None:
    code = "import sys, efrit_budget.app; print('genai_prices' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"
