"""Tests of the files that count as secret."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from efrit_budget.project.secrets import Secrets


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "deploy/.env.production",
        "server.pem",
        "certs/Server.PEM",
        "id_rsa",
        "keys/id_ed25519",
        "id_rsa.bak",
        ".authinfo",
        ".authinfo.gpg",
        "home/.netrc",
        "notes.gpg",
        ".aws/credentials",
        "home/.aws/credentials",
        ".ssh/anything",
        ".ssh/below/anything",
        ".npmrc",
    ],
)
def test_a_file_whose_name_says_so_holds_secrets(name: str) -> None:
    assert Secrets().holds(name)


@pytest.mark.parametrize(
    "name",
    [
        "env.py",
        ".environment",
        ".env.example",
        "id_rsa.pub",
        "src/id_generator.py",
        "valid_id",
        "credentials",
        "aws/credentials.py",
        "pem.md",
        "id_tools/Makefile",
        "server.pem/README",
        ".ssh/id_ed25519.pub",
        ".ssh/known_hosts",
    ],
)
def test_other_files_hold_none(name: str) -> None:
    assert not Secrets().holds(name)


def test_the_last_pattern_that_matches_decides() -> None:
    secrets = Secrets(("*.key", "!public.key", "old/public.key"))
    assert secrets.holds("private.key")
    assert not secrets.holds("public.key")
    assert secrets.holds("very/old/public.key")


@given(st.text(st.sampled_from("aA._-/idenvpmkysh"), min_size=1, max_size=20))
@example("x/.ENV.local")
@example("gcloud/x")
def test_a_look_at_many_names_at_once_misses_no_secret(name: str) -> None:
    if Secrets().holds(name):
        assert Secrets().may_be_in(f"a.py\n{name}\nb.py")
    assert not Secrets().may_be_in("a.py\nsrc/b.el")
