"""Deleting observations, through a real sidecar."""

from __future__ import annotations

from efrit_budget.tools.registry import discover
from tests.tools.conftest import Call, shown
from tests.tools.mem import listed, save


def test_what_is_deleted_is_in_no_answer_any_more(call: Call) -> None:
    number = save(call, "Needle")
    other = save(call, "Another needle")
    envelope = call("mem_delete", id=number)
    assert shown(envelope) == f"Deleted #{number} Needle"
    assert listed(call("mem_search", query="needle")) == [other]
    assert listed(call("mem_context")) == [other]
    assert listed(call("mem_timeline", id=other)) == [other]
    gone = call("mem_get_observation", id=number)
    assert gone["status"] == "error"
    assert f"observation #{number} was deleted at 20" in gone["message"]


def test_what_is_not_there_cannot_be_deleted(call: Call) -> None:
    number = save(call, "Needle")
    call("mem_delete", id=number)
    for missing in (number, 99):
        envelope = call("mem_delete", id=missing)
        assert envelope["status"] == "error"
        assert f"there is no observation #{missing}" in envelope["message"]


def test_a_person_is_asked_before_anything_is_deleted() -> None:
    assert discover().named("mem_delete").policy == "ask"


def test_what_is_deleted_for_good_cannot_be_read_or_exported_again(call: Call) -> None:
    number = save(call, "Needle")
    call("mem_delete", id=number)
    said = shown(call("mem_delete", id=number, for_good=True))
    assert said.startswith(f"Deleted #{number} for good. Sessions that saved or read it keep")
    gone = call("mem_get_observation", id=number)
    assert gone["message"] == f"there is no observation #{number}; mem_search finds some"
    assert call("mem_delete", id=number, for_good=True)["status"] == "error"
