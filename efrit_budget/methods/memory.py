"""The `memory/*` methods: search, save and pack observations."""

from typing import Annotated, Literal

from pydantic import Field

from efrit_budget.budget.estimate import estimate
from efrit_budget.budget.plain import dearest
from efrit_budget.errors import InvalidParamsError, Json
from efrit_budget.memory.observation import Draft, Filters, Observation
from efrit_budget.memory.packing import Form
from efrit_budget.memory.packs import (
    DEFAULT_BUDGET,
    Markdown,
    PackJson,
    context_pack,
    facts_of,
    index_of,
)
from efrit_budget.memory.store import MemoryStore
from efrit_budget.wire.method import Call, Lane, Method, Name, Number, Params

FORMS: dict[str, Form] = {"markdown": Markdown(), "json": PackJson()}
Side = Annotated[int, Field(ge=0, le=1_000)]


class ChoosingParams(Params):
    """The base of params that select observations; empty fields select all."""

    query: str = ""
    project: Name | None = None
    scope: Name | None = None
    kind: Name | None = None
    tags: list[Name] = Field(default_factory=list)

    @property
    def filters(self) -> Filters:
        """The project, scope, kind and tags to select by."""
        return Filters(
            self.project or None, self.scope or None, self.kind or None, tuple(self.tags)
        )


class SearchParams(ChoosingParams):
    """The params of `memory/search`."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 20


class PackParams(ChoosingParams):
    """The params of `memory/pack`."""

    tokens: Annotated[int, Field(ge=0, le=10_000_000)] = DEFAULT_BUDGET
    format: Literal["markdown", "json"] = "markdown"


class GetParams(Params):
    """The params of `memory/get`."""

    id: Number


class TimelineParams(GetParams):
    """The params of `memory/timeline`."""

    before: Side = 5
    after: Side = 5


class SaveParams(Params):
    """The params of `memory/save`."""

    title: str
    content: str
    project: Name = ""
    kind: Name = "note"
    scope: Name = "project"
    topic_key: str | None = None
    tags: list[Name] = Field(default_factory=list)
    importance: Annotated[float, Field(ge=0, le=1)] = 0.5


class MemoryMethods:
    """Searches, reads, saves and packs observations."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def methods(self) -> list[Method]:
        """Return the methods of this family."""
        return [
            Method("memory/search", SearchParams, self._search),
            Method("memory/get", GetParams, self._get, Lane.SLOW),
            Method("memory/timeline", TimelineParams, self._timeline),
            Method("memory/save", SaveParams, self._save, Lane.WRITING),
            Method("memory/pack", PackParams, self._pack),
        ]

    def _search(self, params: SearchParams, _: Call) -> Json:
        found = self._store.search(params.query, params.filters, params.limit)
        results = [index_of(each.observation) for each in found.candidates]
        return {"results": results, "total": found.total, "any_word": found.any_word}

    def _get(self, params: GetParams, _: Call) -> Json:
        observation = self._store.get(params.id)
        if observation is None or observation.deleted is not None:
            raise _not_found(params.id)
        self._store.note_access(params.id)
        return _full_dict(observation)

    def _timeline(self, params: TimelineParams, _: Call) -> Json:
        line = self._store.timeline(params.id, params.before, params.after)
        if line is None:
            raise _not_found(params.id)
        return {
            "before": [index_of(each) for each in line.before],
            "focus": _full_dict(line.focus),
            "after": [index_of(each) for each in line.after],
            "total": line.total,
        }

    def _save(self, params: SaveParams, _: Call) -> Json:
        fields = params.model_dump()
        return dict(vars(self._store.save(Draft(**{**fields, "tags": tuple(params.tags)}))))

    def _pack(self, params: PackParams, _: Call) -> Json:
        form, price = FORMS[params.format], dearest(estimate)
        written = context_pack(
            self._store, params.query, params.filters, params.tokens, form, price
        )
        pack = written.pack
        return {
            "text": written.text,
            "tokens": written.tokens,
            "packed": len(pack.memories),
            "left_out": pack.left_out,
        }


def _full_dict(observation: Observation) -> dict[str, Json]:
    more = {"revision": observation.revision, "topic_key": observation.topic_key}
    return {**facts_of(observation), **more}


def _not_found(number: int) -> InvalidParamsError:
    problem = f"there is no observation #{number}; memory/search finds them"
    return InvalidParamsError(problem, data={"fields": [{"field": "id", "problem": problem}]})
