"""The litellm proxy before a server of ours."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.demo.running import MODEL
from tests.servers.driving import Api, Server
from tests.servers.processes import await_answer, environment_of, process, reserved_port

NAMES: Mapping[Api, str] = {"messages": MODEL, "chat": f"chat-{MODEL}"}
"""The proxy's names for the model of the server behind it, by the API that it asks this in."""
PLAIN: Mapping[Api, str] = {"messages": "nil", "chat": "(usage)"}
"""The features that Emacs takes for granted where it does not know the server."""
ALONE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "DISABLE_ADMIN_UI": "True",
    "NO_DOCS": "True",
    "DO_NOT_TRACK": "1",
}
"""What has it talk to nobody but the server behind it."""


@dataclass(frozen=True)
class Proxy:
    """A proxy: its address, the port of the server behind it, the file of its output, its key."""

    url: str
    behind: int
    log: Path
    key: str = field(default_factory=lambda: f"sk-{secrets.token_hex(32)}")

    def server(self, api: Api, behind: Api | None = None) -> Server:
        """Return what Emacs has to know to ask in one API what is asked in another, or the same."""
        if behind in (None, api):
            return Server(self.url, api, NAMES[api], self.key)
        return Server(self.url, api, NAMES[behind], self.key, PLAIN[api])


def settings(behind: int) -> str:
    """Return the proxy's configuration; JSON is YAML."""
    server = f"http://127.0.0.1:{behind}"
    models = [
        (NAMES["messages"], {"model": f"anthropic/{MODEL}", "api_base": server}),
        (NAMES["chat"], {"model": f"hosted_vllm/{MODEL}", "api_base": f"{server}/v1"}),
    ]
    return json.dumps(
        {
            "model_list": [
                {"model_name": name, "litellm_params": {**params, "api_key": "sk-behind"}}
                for name, params in models
            ],
            "litellm_settings": {"telemetry": False, "num_retries": 0},
            "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        }
    )


@contextmanager
def litellm(folder: Path) -> Iterator[Proxy]:
    """Run a proxy before a server that need not be there yet."""
    environment = environment_of("litellm")
    port = reserved_port()
    folder.mkdir(parents=True, exist_ok=True)
    proxy = Proxy(f"http://127.0.0.1:{port}", reserved_port(), folder / "output")
    configuration = folder / "config.yaml"
    configuration.write_text(settings(proxy.behind), encoding="utf-8")
    options = ["--host", "127.0.0.1", "--port", str(port), "--config", str(configuration)]
    variables = {**ALONE, "LITELLM_MASTER_KEY": proxy.key}
    with process([environment / "bin" / "litellm", *options], folder, variables) as (running, log):
        await_answer(running, log, f"{proxy.url}/health/liveliness")
        yield proxy
        assert running.poll() is None, f"it ended: {log.read_text(errors='replace')}"
