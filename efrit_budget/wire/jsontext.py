"""Parse JSON strictly, and serialize it."""

import json
import math
from typing import NoReturn

from efrit_budget.errors import Json, JsonObject, ParseError

MAX_DEPTH = 200
"""The deepest nesting of arrays and objects: safe for recursion on every version of Python."""
SHOWN_KEY = 60
"""The most characters of a repeated key that the error message quotes."""


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(f"{name} is not JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ParseError(f"the number {text[:20]} is out of range")
    return number


def _object(members: list[tuple[str, Json]]) -> JsonObject:
    """Return the members as an object; raise if a key repeats, as parsers differ on that."""
    value = dict(members)
    if len(value) < len(members):
        keys = [key for key, _ in members]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ParseError(f"the key {json.dumps(twice[:SHOWN_KEY])} stands twice in one object")
    return value


def _require_64_bits(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ParseError(f"the integer {text[:20]} has more than 64 bits")
    return number


_DECODER, _NARROW_DECODER = (
    json.JSONDecoder(
        parse_constant=_refuse_constant,
        parse_float=_parse_finite,
        parse_int=parse_int,
        object_pairs_hook=_object,
    )
    for parse_int in (None, _require_64_bits)
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _refuse_lone_surrogates(value: Json) -> None:
    """Raise if a string in `value` has a lone surrogate, which UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ParseError("a string holds a lone surrogate") from None


def _refuse_depth(value: Json) -> None:
    """Raise if arrays and objects are nested more than `MAX_DEPTH` deep."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        level = [inner for outer in level for inner in _containers_in(outer)]
    raise ParseError(f"nested more than {MAX_DEPTH} deep")


def _containers_in(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [inner for inner in value.values() if isinstance(inner, dict | list)]
    if isinstance(value, list):
        return [inner for inner in value if isinstance(inner, dict | list)]
    return []


def parse(raw: bytes, *, for_all: bool = False) -> Json:
    """Parse a UTF-8 JSON text; raise `ParseError` if it is invalid.

    With `for_all`, integers must fit 64 bits, as some programs read no larger ones.
    """
    try:
        text = raw.decode()
        value: Json = (_NARROW_DECODER if for_all else _DECODER).decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _refuse_depth(value)
        if "\\ud" in text or "\\uD" in text:
            _refuse_lone_surrogates(value)
    except UnicodeDecodeError as error:
        raise ParseError(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ParseError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ParseError(f"nested more than {MAX_DEPTH} deep") from None
    except ValueError:  # an integer of thousands of digits
        raise ParseError("a number has too many digits") from None
    return value


def serialize(value: Json) -> bytes:
    """Return `value` as JSON on one line in UTF-8, in ASCII if it has lone surrogates."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
