"""Parse the body of a request."""

import json
from typing import Any, NoReturn

from efrit_budget.demo.refusals import ApiError


def parse_body(raw: bytes) -> Any:
    """Parse a body; raise if it is not a JSON object, or if UTF-8 cannot encode its texts."""
    try:
        body = json.loads(raw, parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise ApiError(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise ApiError("Input should be an object")
    return body


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
