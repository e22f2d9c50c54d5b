"""`docs/tools.md` and `docs/settings.md` are what would be written now."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs import settings_page, tools_page


@pytest.mark.parametrize("module", [tools_page, settings_page], ids=lambda module: module.__name__)
def test_a_generated_page_is_what_would_be_generated_now(module: ModuleType) -> None:
    """Its module's name is the command that writes it."""
    advice = f"run: python -m {module.__name__}"
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), advice
