"""What is wrong with a settings file, a variable or a flag."""

from efrit_budget.errors import EfritError


class SettingsError(EfritError):
    """A setting that the person gave cannot be used; the message says where and why."""

    code = -32006


def shown(value: object) -> str:
    """Return a value as it may stand in one line of a message, whoever wrote it."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
