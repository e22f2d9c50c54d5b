"""Create every store, tool and method, connect them, and call them."""

import logging
import logging.handlers
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from efrit_budget import __version__
from efrit_budget.budget.models import model_named
from efrit_budget.changes import rows as changes
from efrit_budget.conversation import calls, segments, turns, windows
from efrit_budget.conversation.conversation import Conversation
from efrit_budget.conversation.user_edits import UserEdits
from efrit_budget.errors import EfritError, JsonObject, MethodNotFoundError
from efrit_budget.gateway.sessions import SessionServers
from efrit_budget.memory.store import MemoryStore
from efrit_budget.methods.buffers import BufferMethods
from efrit_budget.methods.changes import ChangesMethods
from efrit_budget.methods.files import FileMethods
from efrit_budget.methods.memory import MemoryMethods
from efrit_budget.methods.models import ModelMethods
from efrit_budget.methods.servers import ServerMethods
from efrit_budget.methods.sessions import SessionMethods
from efrit_budget.methods.tool_offers import Offers
from efrit_budget.methods.tools import ToolMethods
from efrit_budget.methods.turns import TurnMethods
from efrit_budget.methods.worklog import WorklogMethods
from efrit_budget.project.processes.groups import stop_all_groups
from efrit_budget.project.search import ripgrep
from efrit_budget.project.specs import Specs
from efrit_budget.results import store as results
from efrit_budget.sessions.retention import Retention, RetentionRules
from efrit_budget.sessions.store import SessionStore, SessionTables
from efrit_budget.settings.load import LoadedSettings, load
from efrit_budget.settings.places import config_folder, private_folder
from efrit_budget.storage.database import Database
from efrit_budget.storage.owner import Owner
from efrit_budget.toolcalls.buffers import SessionProjects
from efrit_budget.toolcalls.runner import Facilities, ToolRunner
from efrit_budget.toolcalls.running import RunningCalls
from efrit_budget.toolcalls.served import SessionTools
from efrit_budget.tools.registry import discover
from efrit_budget.wire.method import Call, Lane, Method
from efrit_budget.wire.request import (
    Request,
    error_reply,
    log_request,
    success_reply,
    unexpected,
)

log = logging.getLogger(__name__)

LOG_FILES_KEPT = 3
PRIVATE = 0o600
MODELS_FILE = "models.toml"
SESSION_TABLES = SessionTables(
    delete_some=[table.delete_some for table in (calls, segments, results, changes)],
    delete_rest=[turns.delete, windows.empty, changes.delete_checkpoints],
    pinned_sessions=calls.pinned_sessions,
)
GIVEN = ("client", "command line")
"""The origins of settings that stand in no file and in no environment variable."""


class Application:
    """The methods of the sidecar and everything they use."""

    def __init__(self, loaded: LoadedSettings, clock: Callable[[], float] = time.time) -> None:
        settings = loaded.settings
        registry = discover(settings.tools.path, deny=settings.tools.deny)
        self._database = Database(**vars(settings.storage))
        named = partial(model_named, additions=config_folder() / MODELS_FILE)
        self._owner = Owner(self._database.path)
        sessions = SessionStore(self._database, SESSION_TABLES, self._owner)
        rules = RetentionRules(**vars(settings.retention))
        self._retention = Retention(self._database, rules, SESSION_TABLES, self._owner)
        conversation = Conversation(self._database, named, clock)
        offers = Offers(registry, sessions, self._database)
        tools = settings.tools
        specs = Specs(**vars(settings.specs))
        projects = SessionProjects(tools.extra_roots, tools.secret_files, specs)
        memory = MemoryStore(self._database, **vars(settings.memory))
        find_rg = partial(ripgrep.find, prefer_system=tools.prefer_system_rg)
        facilities = Facilities(memory, find_rg, tools)
        running = RunningCalls(self._database, self._owner)
        self._servers = SessionServers()
        in_sessions = SessionTools(registry, self._database, self._servers)
        runner = ToolRunner(
            self._database, named, in_sessions, sessions, projects, facilities, running=running
        )
        changes_methods = ChangesMethods(sessions, projects, self._database)
        families = (
            self._session_methods(loaded, sessions, conversation, projects, changes_methods),
            ToolMethods(registry, runner),
            offers,
            BufferMethods(sessions, projects),
            FileMethods(sessions, conversation, projects),
            changes_methods,
            TurnMethods(sessions, conversation, offers, registry),
            ModelMethods(sessions, conversation, config_folder() / MODELS_FILE),
            WorklogMethods(sessions, UserEdits(self._database, conversation)),
            MemoryMethods(memory),
            ServerMethods(sessions, self._servers, in_sessions, self._database),
        )
        methods = [method for family in families for method in family.methods()]
        self.methods = {method.name: self._of_one_state(method) for method in methods}

    def _session_methods(
        self,
        loaded: LoadedSettings,
        sessions: SessionStore,
        conversation: Conversation,
        projects: SessionProjects,
        changes_methods: ChangesMethods,
    ) -> SessionMethods:
        return SessionMethods(
            sessions,
            conversation,
            settings_for=lambda root: _settings_for(loaded, root),
            retention=self._retention,
            secret_files=loaded.settings.tools.secret_files,
            resumed=changes_methods.remove_scratch,
            ended=[projects.forget_buffers, self._servers.stop],
        )

    def _of_one_state(self, method: Method) -> Method:
        """Return the method; a quick method is wrapped to read only one state of the database."""
        if method.lane is not Lane.QUICK:
            return method
        return replace(method, run=self._database.snapshot(method.run))

    def call(self, method: str, params: Mapping[str, Any], call: Call | None = None) -> Any:
        """Run the method of this name in this thread, log it, and return its result.

        Through `call` it can be cancelled, and its progress can be read.
        """
        if method not in self.methods:
            known = ", ".join(self.method_names())
            raise MethodNotFoundError(f"there is no method {method}; there are: {known}")
        request, started = Request({"params": params}, method, False), time.monotonic()
        reply: JsonObject = {}
        try:
            result = self.methods[method](dict(params), call or Call())
            reply = success_reply(result, None)
        except EfritError as error:
            reply = error_reply(error)
            raise
        except Exception as error:
            defect = unexpected(error, method)
            reply = error_reply(defect)
            raise defect from error
        finally:
            log_request(request, reply, time.monotonic() - started)
        return result

    def method_names(self) -> list[str]:
        """Return the names of all methods, sorted."""
        return sorted(self.methods)

    def finish_removing(self) -> None:
        """Wait until expired sessions are deleted, then shrink the file of the database."""
        self._retention.finish()

    def close(self) -> None:
        """Close the database and stop what is still running."""
        stop_all_groups()
        self._retention.stop()
        self._owner.close()
        self._database.close()
        self._servers.close()  # the last, since a server may take seconds to end


def open_application(loaded: LoadedSettings, clock: Callable[[], float] = time.time) -> Application:
    """Return the application for these settings; `clock` returns the time of turns, in seconds."""
    private_folder(loaded.settings.storage.database.parent)
    return Application(loaded, clock)


def _settings_for(loaded: LoadedSettings, root: Path) -> LoadedSettings:
    """Return the settings that apply to a project."""
    overrides = {
        key: loaded.settings.value(key) for key, origin in loaded.origins.items() if origin in GIVEN
    }
    return load(project_root=root, overrides=overrides)


class _PrivateFileHandler(logging.handlers.RotatingFileHandler):
    """A rotating log file that only its owner can read."""

    def _open(self) -> TextIOWrapper:
        opened = super()._open()
        os.fchmod(opened.fileno(), PRIVATE)
        return opened


def start_logging(loaded: LoadedSettings, *, verbose: bool) -> None:
    """Log to the file of the settings, and to standard error when asked."""
    settings = loaded.settings.log
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if verbose else []
    try:
        private_folder(settings.file.parent)
        handlers.append(
            _PrivateFileHandler(
                settings.file,
                maxBytes=settings.max_bytes,
                backupCount=LOG_FILES_KEPT,
                encoding="utf-8",
                delay=True,
            )
        )
    except OSError as error:
        sys.stderr.write(f"efrit-budget: no log file: {error}\n")
    logging.basicConfig(
        level=settings.level.upper(),
        format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s",
        handlers=handlers,
    )
    database = loaded.settings.storage.database
    log.info("efrit-budget %s, Python %s, %s", __version__, platform.python_version(), database)
    for warning in loaded.warnings:
        log.warning("%s", warning)
