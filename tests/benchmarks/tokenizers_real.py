"""The real tokenizers, for fitting and measuring only: the product never loads them.

They lie inside wheels of the package index, which are downloaded once into a folder that git
ignores: Claude's as a file of `anthropic`, cl100k's and o200k's ranks inside `litellm`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer

CACHE = Path(__file__).parents[2] / ".bench-cache"
ANTHROPIC, LITELLM = "anthropic==0.38.0", "litellm==1.109.1"
CLAUDE_FILE = "anthropic/tokenizer.json"
AT_ONCE = 100
RANKS_FOLDER = "litellm/litellm_core_utils/tokenizers"

Counter = Callable[[Sequence[str]], list[int]]


def unpacked(requirement: str) -> Path:
    """Return the folder of a wheel's contents; downloads and unpacks it the first time."""
    folder = CACHE / requirement.replace("==", "-")
    if not folder.exists():
        wheels = CACHE / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(wheels), requirement], check=True)
        wheel = next(wheels.glob(requirement.replace("==", "-") + "-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


@cache
def tokenizer() -> Tokenizer:
    """Return Claude's tokenizer."""
    return Tokenizer.from_file(str(unpacked(ANTHROPIC) / CLAUDE_FILE))


@cache
def claude() -> Counter:
    """Return a counter by Claude's tokenizer, which takes a few texts at a time to save memory."""
    return lambda texts: [
        len(found.ids)
        for at in range(0, len(texts), AT_ONCE)
        for found in tokenizer().encode_batch_fast(list(texts[at : at + AT_ONCE]))
    ]


def claude_words() -> frozenset[str]:
    """Return the words that are one token, as `efrit_budget.budget.words` writes them."""
    names = (name.replace("Ġ", "_") for name in tokenizer().get_vocab())
    return frozenset(name for name in names if re.fullmatch("_?[A-Za-z]+", name))


@cache
def openai(name: str) -> Counter:
    """Return a counter by one of OpenAI's tokenizers, from ranks on disk."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(unpacked(LITELLM) / RANKS_FOLDER)
    encoding = tiktoken.get_encoding(name)
    return lambda texts: [len(encoding.encode(text, disallowed_special=())) for text in texts]


COUNTERS: dict[str, Callable[[], Counter]] = {
    "claude": claude,
    "cl100k": lambda: openai("cl100k_base"),
    "o200k": lambda: openai("o200k_base"),
}


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
