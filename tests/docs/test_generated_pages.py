"""`docs/tools.md` and `docs/settings.md` are up to date."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs import settings_page, tools_page


@pytest.mark.parametrize("module", [tools_page, settings_page], ids=lambda module: module.__name__)
def test_a_generated_page_is_what_would_be_generated_now(module: ModuleType) -> None:
    """Running the page's module as a command writes the page."""
    advice = f"run: python -m {module.__name__}"
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), advice
