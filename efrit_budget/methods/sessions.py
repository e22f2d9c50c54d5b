"""The `session/*` methods."""

import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, create_model

from efrit_budget.budget.tiers import MOST_TOKENS, AtLeastNone, Limits, Tier, tier_sizes
from efrit_budget.conversation.conversation import Conversation
from efrit_budget.errors import Json, field_error
from efrit_budget.memory.private import without_private
from efrit_budget.methods.params import SessionParams
from efrit_budget.sessions.retention import Retention
from efrit_budget.sessions.rows import Session
from efrit_budget.sessions.store import ID_PATTERN, SessionStore
from efrit_budget.settings.load import LoadedSettings
from efrit_budget.wire.method import Call, Lane, Method, NoParams, Params

SettingsFor = Callable[[Path], LoadedSettings]
SHOWN = 200
"""The most characters of a root or of its problem that an error shows."""
ToolTokens = Annotated[int, Field(ge=50, le=MOST_TOKENS)]


if TYPE_CHECKING:
    TierParams = Params
else:
    TierParams = create_model(
        "TierParams", __base__=Params, **dict.fromkeys(Tier, (AtLeastNone | None, None))
    )


class LimitParams(TierParams):
    """The limits a client wants, those of tiers included; missing ones come from the settings."""

    total: Annotated[int, Field(ge=1_000, le=MOST_TOKENS)] | None = None
    per_tool_default: ToolTokens | None = None
    per_tool: dict[str, ToolTokens] = Field(default_factory=dict)
    low_water: Annotated[float, Field(ge=0, le=1)] | None = None
    recent_turns: Annotated[int, Field(ge=0, le=1_000)] | None = None
    recent_share: Annotated[float, Field(ge=0, le=1)] | None = None
    index_share: Annotated[float, Field(ge=0, le=1)] | None = None
    patience: Annotated[float, Field(ge=0, le=1_000)] | None = None
    warning_threshold: AtLeastNone | None = None


class OpenParams(Params):
    """The params of `session/open`."""

    root: Annotated[str, Field(min_length=1)]
    session_id: Annotated[str, Field(pattern=ID_PATTERN)] | None = None
    limits: LimitParams = LimitParams()
    deny: Annotated[list[str], Field(max_length=1_000)] = Field(default_factory=list)


class ResumeParams(SessionParams):
    """The params of `session/resume`."""

    take_over: bool = False
    former_owner: Annotated[str, Field(max_length=64)] | None = None


class ChangeLimitsParams(SessionParams):
    """The params of `session/limits`."""

    limits: LimitParams


class SessionListParams(Params):
    """The params of `session/list`."""

    root: str | None = None
    include_closed: bool = False
    price: bool = False


class StatusParams(SessionParams):
    """The params of `session/status`."""

    price: bool = False


class RenameParams(SessionParams):
    """The params of `session/rename`."""

    title: Annotated[str, Field(max_length=200)]
    automatic: bool = False


class SessionMethods:
    """Opens, finds and closes sessions."""

    def __init__(
        self,
        store: SessionStore,
        conversation: Conversation,
        settings_for: SettingsFor,
        retention: Retention,
        secret_files: Sequence[str],
        *,
        resumed: Callable[[Session], None],
        ended: Sequence[Callable[[str], None]],
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._settings_for = settings_for
        self._retention = retention
        self._secret_files = secret_files
        self._resumed = resumed
        self._ended = ended

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [
            Method("session/open", OpenParams, self._open, Lane.WRITING),
            Method("session/resume", ResumeParams, self._resume, Lane.WRITING),
            Method("session/limits", ChangeLimitsParams, self._change_limits, Lane.WRITING),
            Method("session/list", SessionListParams, self._list),
            Method("session/status", StatusParams, self._status),
            Method("session/close", SessionParams, self._close, Lane.WRITING),
            Method("session/rename", RenameParams, self._rename, Lane.WRITING),
            Method("session/delete", SessionParams, self._delete, Lane.WRITING),
            Method("session/purge", SessionParams, self._purge, Lane.WRITING),
            Method("ping", NoParams, lambda _params, _call: "pong"),
        ]

    def _open(self, params: OpenParams, _: Call) -> Json:
        root = _folder(params.root)
        loaded = self._settings_for(root)
        session = self._store.open(
            str(root),
            choose_limits(loaded, params.limits),
            list(dict.fromkeys((*loaded.settings.tools.deny, *params.deny))),
            params.session_id,
            other_limits=bool(params.limits.model_fields_set),
        )
        return self._begun(session, loaded.warnings)

    def _resume(self, params: ResumeParams, _: Call) -> Json:
        session = self._store.resume(
            params.session_id, take_over=params.take_over, former=params.former_owner
        )
        self._resumed(session)
        return self._begun(session)

    def _change_limits(self, params: ChangeLimitsParams, _: Call) -> Json:
        session = self._store.change_limits(
            params.session_id, lambda limits: changed_limits(limits, params.limits)
        )
        return {**self._shown(session), "limits": session.limits.as_dict()}

    def _begun(self, session: Session, warnings: Sequence[str] = ()) -> Json:
        """Return the reply of `session/open` or `session/resume`; start to delete expired ones."""
        return {
            **self._shown(session),
            "owner": self._store.owner,
            "warnings": [*warnings, *self._retention.begin()],
            "secret_files": list(self._secret_files),
        }

    def _status(self, params: StatusParams, _: Call) -> Json:
        session = self._store.get(params.session_id)
        return {
            **session.summary(),
            "limits": session.limits.as_dict(),
            **self._conversation.status(session, price=params.price),
        }

    def _list(self, params: SessionListParams, _: Call) -> Json:
        root = None if params.root is None else str(_resolve(params.root))
        found = self._store.list(root, include_closed=params.include_closed)
        calls = self._conversation.count_calls()
        prices = self._conversation.prices(found) if params.price else {}
        return {
            "sessions": [
                session.summary() | {"calls": calls.get(session.id, 0)} | prices.get(session.id, {})
                for session in found
            ]
        }

    def _close(self, params: SessionParams, _: Call) -> Json:
        session = self._store.close(params.session_id)
        self._end(session.id)
        return session.summary()

    def _rename(self, params: RenameParams, _: Call) -> Json:
        title = without_private(params.title)
        renamed = self._store.rename(params.session_id, title, by_person=not params.automatic)
        return renamed.summary()

    def _delete(self, params: SessionParams, _: Call) -> Json:
        self._store.delete(params.session_id)
        self._end(params.session_id)
        self._retention.tidy()
        return {"session_id": params.session_id, "deleted": True}

    def _purge(self, params: SessionParams, _: Call) -> Json:
        session = self._store.purge(params.session_id)
        self._end(session.id)
        self._retention.tidy()
        return session.summary()

    def _end(self, session_id: str) -> None:
        """Have all that was kept for a session be forgotten or stopped."""
        for end in self._ended:
            end(session_id)

    def _shown(self, session: Session) -> dict[str, Json]:
        return {**session.summary(), "budget": self._conversation.budget(session)}


def choose_limits(loaded: LoadedSettings, wanted: LimitParams) -> Limits:
    """Return a session's limits: the client's, else the settings'."""
    return _merged(vars(loaded.settings.budget), wanted)


def changed_limits(limits: Limits, wanted: LimitParams) -> Limits:
    """Return other limits of a session: the client's, else its own.

    With another total, its tiers keep their shares.
    """
    return _merged(limits.as_dict() | limits.shares(wanted.total or limits.total), wanted)


def _merged(own: Mapping[str, Any], wanted: LimitParams) -> Limits:
    chosen = {**own} | {name: value for name, value in wanted if value is not None}
    chosen["per_tool"] = own["per_tool"] | wanted.per_tool
    tiers = tier_sizes(chosen["total"], {tier: chosen.pop(tier) for tier in Tier})
    return Limits(tiers=tiers, **chosen)


def _folder(given: str) -> Path:
    """Return the folder of a root; raise if it does not exist or is no folder."""
    root = _resolve(given)
    try:
        kind = root.stat().st_mode
    except FileNotFoundError:
        raise field_error("root", f"{given} does not exist") from None
    except OSError as error:
        raise field_error("root", f"{given[:SHOWN]} cannot be used: {error.strerror}") from None
    if not stat.S_ISDIR(kind):
        raise field_error("root", f"{given} is not a folder")
    return root


def _resolve(given: str) -> Path:
    """Return the real path of a root; raise if it is no path, or cannot be stored as text."""
    try:
        root = Path(given).expanduser().resolve()
        str(root).encode()
    except (OSError, RuntimeError, ValueError) as error:
        raise field_error("root", f"no path can be made of it: {str(error)[:SHOWN]}") from None
    return root
