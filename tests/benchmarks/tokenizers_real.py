"""The real tokenizers, for fitting and measuring only: the product never loads them.

They lie inside wheels of the package index, which are downloaded once into a folder that git
ignores: Claude's as a file of `anthropic`, cl100k's and o200k's ranks inside `litellm`.
"""

from __future__ import annotations

import hashlib
import json
import os
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
RANKS_FOLDER = "litellm/litellm_core_utils/tokenizers"

Counter = Callable[[Sequence[str]], list[int]]


def unpacked(requirement: str) -> Path:
    """The folder of a wheel's contents; downloads and unpacks it the first time."""
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
def claude() -> Counter:
    """Counts with Claude's tokenizer."""
    tokenizer = Tokenizer.from_file(str(unpacked(ANTHROPIC) / CLAUDE_FILE))
    return lambda texts: [len(found.ids) for found in tokenizer.encode_batch_fast(list(texts))]


@cache
def openai(name: str) -> Counter:
    """Counts with one of OpenAI's tokenizers, from ranks on disk."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(unpacked(LITELLM) / RANKS_FOLDER)
    encoding = tiktoken.get_encoding(name)
    return lambda texts: [len(encoding.encode(text, disallowed_special=())) for text in texts]


COUNTERS: dict[str, Callable[[], Counter]] = {
    "claude": claude,
    "cl100k": lambda: openai("cl100k_base"),
    "o200k": lambda: openai("o200k_base"),
}


def count(name: str, texts: Sequence[str]) -> list[int]:
    """The real token counts of texts; remembered on disk, as they never change."""
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
