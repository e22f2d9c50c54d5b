"""The error of an invalid setting."""

from efrit_budget.errors import EfritError


class SettingsError(EfritError):
    """A setting cannot be used; the message says where and why."""

    code = -32006


def shown(value: object) -> str:
    """Return a value as it may stand in one line of a message, whoever wrote it."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
