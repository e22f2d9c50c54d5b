"""Parse a request of the Messages API whose shape was checked."""

from efrit_budget.demo.conversation import ParsedRequest, Turn, add_message, as_blocks
from efrit_budget.errors import JsonObject


def parse_request(body: JsonObject) -> ParsedRequest:
    """Return the parsed request of a body."""
    turns: list[Turn] = []
    for number, message in enumerate(body["messages"]):
        add_message(turns, number, message["role"], as_blocks(message["content"]))
    last_user = max((turn.message for turn in turns if turn.role == "user"), default=-1)
    for turn in turns:
        message = body["messages"][turn.message]
        turn.is_cleared = message.get("clear_at") == "next_user_message" and (
            turn.message < last_user
        )
    return ParsedRequest(
        body=body,
        tools=body.get("tools") or [],
        system=as_blocks(body.get("system") or []),
        turns=turns,
        max_tokens=body.get("max_tokens"),
        user_id=(body.get("metadata") or {}).get("user_id"),
        thinking=body.get("thinking") or {},
    )
