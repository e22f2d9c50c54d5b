"""Tests of the environment that commands get."""

from __future__ import annotations

import pytest

from efrit_budget.project.processes.environment import holds_key, unattended


@pytest.mark.parametrize(
    "name",
    [
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "anthropic_api_key", "OPENAI_API_KEY"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
        *("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN", "TOKEN", "HF_TOKEN"),
        *("MISTRAL_API_KEY", "MY_APIKEY", "STRIPE_SECRET", "SECRET_KEY_BASE", "DJANGO_SECRET_KEY"),
        *("PGPASSWORD", "MYSQL_PWD_PASSWORD", "DB_PASS", "SSH_KEY_PASSPHRASE", "SENTRY_DSN"),
        *("MYSQL_PWD", "DB_PWD", "SSHPASS", "BW_SESSION", "OP_SESSION_my", "JWT", "CI_JOB_JWT_V2"),
        *("COOKIE", "SESSION_COOKIE", "AUTHORIZATION", "PROXY_AUTHORIZATION", "DOCKER_AUTH_CONFIG"),
        *("CONNECTION_STRING", "DB_CONNECTION_STRING", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_COUNT"),
        *("PASS", "KEY", "PAT", "AUTH", "OTP", "CREDS", "DSN", "TOKENS", "SMTP_PW", "DBPASS"),
        *("SSH_AUTH_SOCK", "BEARER", "MY_CREDS", "GITHUB_OTP"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "DEPLOY_KEY", "SLACK_WEBHOOK_URL", "AZURE_TENANT_ID"),
    ],
)
def test_a_variable_named_for_a_key_is_kept_back(name: str) -> None:
    assert holds_key(name, "value")


@pytest.mark.parametrize(
    "value",
    [
        "sk-" + "a1" * 20,
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 12,
        "AKIA" + "A1" * 8,
        "ASIA" + "A1" * 8,
        "sk_live_" + "a1" * 12,
        "xoxb-" + "a1" * 8,
        "postgres://me:hidden@host/base",
        "redis://:hidden@host",
        "Server=host;Pwd=hidden;",
        "AccountName=a;AccountKey=hidden==",
        "Authorization: Bearer " + "a1" * 10,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
    ],
)
def test_a_value_that_looks_like_a_key_is_kept_back_under_any_name(value: str) -> None:
    assert holds_key("HARMLESS", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/somewhere"),
        ("LANG", "C.UTF-8"),
        ("PWD", "/somewhere"),
        ("OLDPWD", "/somewhere"),
        ("DESKTOP_SESSION", "gnome"),
        ("AUTHOR", "me"),
        ("XAUTHORITY", "/run/x"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("KEYBOARD", "us"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("https_proxy", "http://me:hidden@proxy:3128"),
        ("MONKEY", "sk-8"),
        ("GIT_SSH_COMMAND", "ssh -i ~/.ssh/id_x"),
    ],
)
def test_what_a_command_needs_is_left_to_it(name: str, value: str) -> None:
    assert unattended({name: value})[name] == value


def test_nobody_is_asked_and_no_page_waits() -> None:
    given = unattended({"PAGER": "less", "EDITOR": "emacs", "SSH_ASKPASS": "/bin/ask"})
    assert (given["PAGER"], given["GIT_PAGER"], given["TERM"]) == ("cat", "cat", "dumb")
    assert (given["EDITOR"], given["GIT_TERMINAL_PROMPT"]) == ("false", "0")
    assert "SSH_ASKPASS" not in given
