"""The pages and chapters that are written from the program are up to date."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs import options_page, settings_page, tools_page


@pytest.mark.parametrize(
    "module", [tools_page, settings_page, options_page], ids=lambda module: module.__name__
)
def test_a_generated_page_is_what_would_be_generated_now(module: ModuleType) -> None:
    """Running the page's module as a command writes the page."""
    advice = f"run: python -m {module.__name__}"
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), advice


def test_the_table_of_tiers_is_what_would_be_generated_now() -> None:
    """It stands in a page that is otherwise written by hand."""
    advice = "run: python -m tests.docs.settings_page"
    assert settings_page.BUDGET_PAGE.read_text("utf-8") == settings_page.budget_page(), advice
