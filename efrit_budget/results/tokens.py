"""Handles of results and continuation tokens of pages."""

import hashlib
import re
from dataclasses import dataclass

from efrit_budget.errors import EfritError

HANDLE = re.compile(r"\s*[rR]?([1-9][0-9]{0,8})\s*")
TOKEN = re.compile(r"\s*r([1-9][0-9]{0,8}):([0-9]{1,12})-([0-9a-f]{4})\s*")
AGAIN = "call the tool anew without continuation_token to start again"
LISTED = "recall_result without a handle lists what there is"


class TokenError(EfritError):
    """A handle or continuation token is invalid."""


@dataclass(frozen=True)
class Place:
    """An offset in a stored result."""

    number: int
    offset: int


def handle(number: int) -> str:
    """Return a result's handle."""
    return f"r{number}"


def number_of(text: str) -> int:
    """Return the number of the result with this handle; raise if the text is no handle."""
    matched = HANDLE.fullmatch(text)
    if matched is None:
        raise TokenError(f"{text[:40]!r} is no handle; a handle looks like r7; {LISTED}")
    return int(matched[1])


def continuation_token(session_id: str, place: Place) -> str:
    """Return the token with which the model asks for the page that begins at this place."""
    return f"{handle(place.number)}:{place.offset}-{_seal(session_id, place)}"


def place_of(session_id: str, token: str) -> Place:
    """Return the place of a token; raise if it is invalid or belongs to another session."""
    matched = TOKEN.fullmatch(token)
    if matched is None:
        raise TokenError(f"{token[:40]!r} is no continuation token; {AGAIN}")
    place = Place(int(matched[1]), int(matched[2]))
    if _seal(session_id, place) != matched[3]:
        raise TokenError(f"continuation token {token.strip()} is not of this session; {AGAIN}")
    return place


def _seal(session_id: str, place: Place) -> str:
    named = f"{session_id}/{place.number}/{place.offset}"
    return hashlib.sha256(named.encode()).hexdigest()[:4]
