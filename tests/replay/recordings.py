"""Small recorded sessions, in the forms of the programs that write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Line = dict[str, Any]


def claude_code(*turns: tuple[str | None, str, dict[str, str]]) -> str:
    """Return a session in Claude Code's lines.

    Each turn has a user message or None, the reply's text, and the results of its calls of `Read`,
    by path.
    """
    return "".join(json.dumps(line) + "\n" for line in _claude_code(turns))


def _claude_code(turns: tuple[tuple[str | None, str, dict[str, str]], ...]) -> Iterator[Line]:
    for number, (message, said, reads) in enumerate(turns):
        moment = f"2026-02-10T04:{number:02}:04.000Z"
        if message is not None:
            yield {"type": "user", "timestamp": moment, "message": {"content": message}}
        blocks: list[Line] = [{"type": "text", "text": said}]
        blocks += [
            {"type": "tool_use", "id": f"u{number}{path}", "name": "Read", "input": {"path": path}}
            for path in reads
        ]
        for block in blocks:
            content = {"id": f"m{number}", "model": "claude-opus-4-6", "content": [block]}
            yield {"type": "assistant", "timestamp": moment, "message": content}
        for path, text in reads.items():
            block = {"type": "tool_result", "tool_use_id": f"u{number}{path}", "content": text}
            yield {"type": "user", "timestamp": moment, "message": {"content": [block]}}


PI = """\
{"type":"session","id":"1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/x","modelId":"m"}
{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user",\
"content":[{"type":"text","text":"Look."}]}}
{"type":"message","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant",\
"model":"claude-sonnet-4-5","usage":{"input":3,"output":9,"cacheRead":0,"cacheWrite":7},\
"content":[{"type":"text","text":"I look."},\
{"type":"toolCall","id":"t1","name":"read","arguments":{"path":"a.py"}}]}}
{"type":"message","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult",\
"toolCallId":"t1","toolName":"read","content":[{"type":"text","text":"def parse_all(): pass"}]}}
{"type":"message","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"assistant",\
"model":"claude-sonnet-4-5","content":[],"stopReason":"aborted"}}
{"type":"message","timestamp":"2026-01-01T00:00:05.000Z","message":{"role":"assistant",\
"model":"claude-sonnet-4-5","content":[{"type":"text","text":"It defines parse_all."}]}}
"""
