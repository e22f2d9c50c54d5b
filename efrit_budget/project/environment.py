"""The environment of a command that the model runs: without keys, without anybody to answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

KEY_NAMES = (
    *("ANTHROPIC_*", "OPENAI_*", "CLAUDE_*", "GEMINI_*", "AWS_*", "AZURE_*", "ARM_*"),
    *("*API_KEY*", "*APIKEY*", "*_KEY", "*_KEYS", "*_KEY_ID", "*PRIVATE_KEY*", "*ACCESS_KEY*"),
    *("TOKEN", "*_TOKEN", "*_TOKENS", "*_TOKEN_*", "*_PAT", "JWT", "*_JWT", "*_JWT_*", "*_DSN"),
    *("*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*PASSCODE*", "*_PASS", "PGPASS*"),
    *("SSHPASS", "*_PWD", "*CREDENTIAL*", "*_CREDS", "*_AUTH", "*_AUTH_*", "*AUTHORIZATION*"),
    *("*BEARER*", "COOKIE", "COOKIES", "*_COOKIE", "*_COOKIES", "*CONNECTION_STRING*", "*CONNSTR*"),
    *("BW_SESSION", "OP_SESSION_*", "*_OTP", "*WEBHOOK_URL*", "KUBECONFIG", "NETRC"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_VALUE_*", "GIT_CONFIG_PARAMETERS"),
)
"""Names of variables that usually hold keys, or say where they are."""
KEY_VALUES = re.compile(
    r"sk-[\w-]{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|[\w+.-]+://[^/\s:@]*:[^/\s@]+@\S*"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+|npm_\w{30,}|hf_\w{30,}"
    r"|(?i:(?:password|pwd|accountkey|sharedaccesskey)=[^\s;]{4,})|(?i:bearer) [\w.~+/-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    re.ASCII,
)
"""Values that are keys by their look, whatever the name; also an address with a password."""
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
"""Nobody looks at a page or types into an editor: who wants that fails at once."""


def holds_key(name: str, value: str) -> bool:
    """Whether a variable looks as if it held a key."""
    upper = name.upper()
    if any(fnmatchcase(upper, pattern) for pattern in KEY_NAMES):
        return True
    leads_out = upper.endswith("_PROXY")  # without its password no command gets anywhere
    return not leads_out and KEY_VALUES.search(value) is not None


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that look as if they held keys."""
    return {name: value for name, value in environment.items() if not holds_key(name, value)}


def unattended(environment: Mapping[str, str]) -> dict[str, str]:
    """What a command gets of an environment."""
    kept = {n: value for n, value in without_keys(environment).items() if n not in ASKERS}
    return kept | UNATTENDED
