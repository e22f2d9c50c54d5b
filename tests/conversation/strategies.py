"""Hypothesis strategies for random sequences of a session's steps."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.conversation.client import MODEL, PLAIN_MODEL, text
from tests.conversation.texts import SMALL_TEXTS, TEXTS, make_text

Call = tuple[str, dict[str, Any], str | None, str | None]
"""A tool's name and arguments and, if the client runs it, its result and its outcome."""

MODELS = [MODEL, PLAIN_MODEL, "llama-of-some-kind", "gpt-5", "qwen3:8b"]
LIMITS = st.fixed_dictionaries(
    {"total": st.sampled_from([4_000, 8_000, 8_000, 14_000, 14_000, 30_000, 100_000, 1_000])},
    optional={
        "per_tool_default": st.sampled_from([50, 300, 2_000, 20_000]),
        "low_water": st.sampled_from([0.0, 0.2, 1.0]),
        "history": st.sampled_from([60, 100]),
        "user_message": st.sampled_from([60, 100]),
    },
)
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4000},
}
MESSAGES = st.one_of(
    st.none(),
    st.none(),
    SMALL_TEXTS,
    TEXTS,
    st.lists(SMALL_TEXTS.map(text) | st.just(IMAGE), min_size=1, max_size=3),
)
USAGE = st.sampled_from(["honest", "honest", "honest", "missing", "absurd", "no numbers", "tiny"])
COMMON = st.builds(make_text, st.just("lines"), st.sampled_from([30, 900, 900, 1_500, 4_000]))
"""A few texts, so that some results are equal."""
TOOL_CALLS = st.one_of(
    st.builds(lambda given: ("eval_sexp", {}, given, "success"), COMMON),
    st.builds(lambda given: ("eval_sexp", {}, given, "success"), COMMON),
    st.builds(
        lambda given, status: ("eval_sexp", {}, given, status),
        TEXTS,
        st.sampled_from(["success", "success", "error"]),
    ),
    st.builds(
        lambda count: ("catalogue", {"max_files": count}, None, None),
        st.sampled_from([1, 30, 2_000]),
    ),
    st.just(("file_info", {"paths": ["README.md", "nowhere"]}, None, None)),
    st.just(("clumsy", {"compressor": "raises"}, None, None)),
    st.just(("catalogue", {"max_files": 500, "max_tokens": "120"}, None, None)),
    st.just(("catalogue", {"max_files": 0}, None, None)),
    st.just(("recall_result", {"handle": "r1"}, None, None)),
    st.just(("recall_result", {}, None, None)),
)
