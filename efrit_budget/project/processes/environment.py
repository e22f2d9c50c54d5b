"""The environment of commands that the model runs: no keys, no prompts."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache

KEY_NAMES = (
    *("TOKEN", "JWT", "SSHPASS", "COOKIE", "COOKIES", "BW_SESSION", "KUBECONFIG", "NETRC"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
)
KEY_BEGINNINGS = (
    *("ANTHROPIC_", "OPENAI_", "CLAUDE_", "GEMINI_", "AWS_", "AZURE_", "ARM_", "PGPASS"),
    *("OP_SESSION_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"),
)
KEY_ENDINGS = (
    *("_KEY", "_KEYS", "_KEY_ID", "_TOKEN", "_TOKENS", "_PAT", "_JWT", "_DSN", "_PASS", "_PWD"),
    *("_CREDS", "_AUTH", "_COOKIE", "_COOKIES", "_OTP", "_PW", "DBPASS"),
)
KEY_PARTS = (
    *("API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "_TOKEN_", "_JWT_", "_AUTH_", "SECRET"),
    *("PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "AUTHORIZATION", "BEARER"),
    *("CONNECTION_STRING", "CONNSTR", "WEBHOOK_URL"),
)
"""Names of variables, in capitals, that usually hold keys or the places of keys: KEY_NAMES are
whole names, as are KEY_ENDINGS without their underscore; the others are parts of names."""
FOLDERS = ("PWD", "OLDPWD")
"""The variables of shells that end as if they held a password."""
KEY_VALUES = re.compile(
    r"sk-[\w-]{16,}|[sr]k_(?:live|test)_\w{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|A[KS]IA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|[\w+.-]+://[^/\s:@]*:[^/\s@]+@\S*"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+|npm_\w{30,}|hf_\w{30,}"
    r"|(?i:(?:password|pwd|accountkey|sharedaccesskey)=[^\s;]{4,})|(?i:bearer) [\w.~+/-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    re.ASCII,
)
"""Values that look like keys, whatever the variable's name; also URLs with a password."""
ASKERS = ("SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS")
UNATTENDED = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "TERM": "dumb",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
}
"""Variables that turn off pagers, and make editors and prompts fail: nobody can answer them."""


def holds_key(name: str, value: str) -> bool:
    """Return whether a variable probably holds a key."""
    upper = name.upper()
    if upper in KEY_NAMES or upper.startswith(KEY_BEGINNINGS):
        return True
    if f"_{upper}".endswith(KEY_ENDINGS) and upper not in FOLDERS:
        return True
    leads_out = upper.endswith("_PROXY")  # commands need the proxy's password
    is_key = not leads_out and KEY_VALUES.search(value) is not None
    return is_key or any(part in upper for part in KEY_PARTS)


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that probably hold keys."""
    return {name: value for name, value in environment.items() if not holds_key(name, value)}


def own_without_keys() -> dict[str, str]:
    """Return this process's environment without keys, cached until the environment changes."""
    return dict(_own_without_keys(hash(tuple(os.environb.items()))))


@lru_cache(maxsize=1)
def _own_without_keys(_state: int) -> dict[str, str]:
    return without_keys(os.environ)


def unattended(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without keys, in which programs do not ask a person."""
    kept = {n: value for n, value in without_keys(environment).items() if n not in ASKERS}
    return kept | UNATTENDED
