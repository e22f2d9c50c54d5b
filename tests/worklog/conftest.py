"""Clients for the tests of this folder."""

from __future__ import annotations

from tests.window.conftest import client, open_client

__all__ = ["client", "open_client"]
