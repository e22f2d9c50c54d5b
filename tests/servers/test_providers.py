"""What `M-x efrit-add-provider` finds out of servers of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.servers.aimock import aimock
from tests.servers.driving import PATHS, emacs
from tests.servers.litellm import NAMES, Proxy
from tests.servers.scripted import scripted

HELLO = '[[reply]]\ntext = "Hello."\n'

pytestmark = pytest.mark.soak(alone=True)


def works(found: dict[str, Any], url: str) -> bool:
    """Return whether a server was found that streams, takes tools and counts tokens."""
    can = [found[name] for name in ("streaming", "tools", "usage")]
    return (found["url"], can) == (url + PATHS["chat"], [True] * 3)


def test_litellm_is_found_with_its_models_and_their_windows(proxy: Proxy, tmp_path: Path) -> None:
    key = f'(("Authorization" . "Bearer {proxy.key}"))'
    known = f'(("it" :url "{proxy.url}{PATHS["chat"]}" :api chat :headers {key}))'
    with scripted(HELLO, tmp_path / "model", proxy.behind), emacs(tmp_path) as running:
        found = running.look(proxy.url, NAMES["messages"], {"efrit-providers": known})
    assert works(found, proxy.url), found
    assert found["models"] == list(NAMES.values())
    assert found["window"] == 1_000_000


def test_aimock_is_found_with_its_models(tmp_path: Path) -> None:
    hello = {"response": {"content": "Hello."}}
    with aimock([hello], tmp_path / "aimock") as server, emacs(tmp_path) as running:
        found = running.look(server.url, "gpt-4o", {})
    assert works(found, server.url), found
    assert "gpt-4o" in found["models"]
