"""The person's folders for state, configuration and logs."""

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path, user_log_path, user_state_path

HOME_VARIABLE = "EFRIT_BUDGET_HOME"
PROJECT_FILE_NAME = ".efrit.toml"
_APPLICATION = "efrit-budget"
PRIVATE, OTHERS = 0o700, 0o077


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the database."""
    return _override("state", environ) or user_state_path(_APPLICATION, appauthor=False)


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of `config.toml`."""
    return _override("config", environ) or user_config_path(_APPLICATION, appauthor=False)


def log_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the log file."""
    return _override("log", environ) or user_log_path(_APPLICATION, appauthor=False)


def config_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the person's own settings file, whether it exists or not."""
    return config_folder(environ) / "config.toml"


def database_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the default path of the database."""
    return state_folder(environ) / "efrit-budget.sqlite3"


def log_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the default path of the log."""
    return log_folder(environ) / "efrit-budget.log"


def private_folder(folder: Path) -> None:
    """Create a folder that only its owner may enter; restrict our own folders if they exist."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=PRIVATE, exist_ok=True)
    if folder in (state_folder(), log_folder()):
        found = folder.stat()
        if found.st_uid == os.geteuid() and found.st_mode & OTHERS:
            folder.chmod(PRIVATE)


def _override(name: str, environ: Mapping[str, str] | None) -> Path | None:
    home = (os.environ if environ is None else environ).get(HOME_VARIABLE)
    return Path(home).expanduser().absolute() / name if home else None
