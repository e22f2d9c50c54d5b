"""`efrit-budget repl`: type requests and read replies."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from efrit_budget.cli.application import opened_application
from efrit_budget.cli.arguments import add_json_flag
from efrit_budget.cli.output import complain_about_call, print_json
from efrit_budget.errors import EfritError, InvalidParamsError
from efrit_budget.wire.jsontext import parse

if TYPE_CHECKING:
    from efrit_budget.app import Application

NAME = "repl"
HELP = "Type requests and read replies."
EXAMPLES = """  efrit-budget repl
  echo 'tools/list' | efrit-budget repl --json

At the prompt, a line is `method {json}`, or a JSON-RPC request:
  session/open {"root": "."}
  {"jsonrpc": "2.0", "id": 1, "method": "session/list"}
"""

_PROMPT: Final = "efrit> "
_HELP: Final = """method {json}   call a method, such as: session/open {"root": "."}
{...} or [...]   a JSON-RPC request, or a batch of them
methods         the names of all methods
help            this text
quit            leave (so does the end of input)"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    add_json_flag(parser, "print each reply as JSON on one line")


def run(arguments: argparse.Namespace) -> int:
    """Answer each line of stdin; return 1 if a line failed and stdin is no terminal."""
    with opened_application(arguments) as application:
        session = Repl(application, compact=arguments.as_json)
        interactive = sys.stdin.isatty()
        piped = (raw.decode(errors="surrogateescape").strip() for raw in sys.stdin.buffer)
        lines = _typed_lines(application.method_names()) if interactive else piped
        for line in lines:
            if line in {"quit", "exit"}:
                break
            session.answer(line)
    return 1 if session.failed and not interactive else 0


def _typed_lines(methods: list[str]) -> Iterator[str]:
    """Yield the lines that the person types; Ctrl-C drops a line, Ctrl-D ends."""
    from efrit_budget.settings.places import state_folder

    print("Type a method and its parameters, or help.")
    with _line_editing([*methods, "help", "methods", "quit"], state_folder() / "repl-history"):
        while True:
            try:
                yield input(_PROMPT).strip()
            except KeyboardInterrupt:
                print()
            except EOFError:
                print()
                return


@contextmanager
def _line_editing(words: Sequence[str], history: Path) -> Iterator[None]:
    """Complete `words` on TAB while the block runs; keep a history that only its owner reads."""
    try:
        import readline
    except ImportError:
        yield
        return

    def matching(prefix: str, number: int) -> str | None:
        found = [word for word in words if word.startswith(prefix)]
        return found[number] if number < len(found) else None

    readline.set_completer(matching)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(1000)
    with suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        with suppress(OSError):
            history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            history.touch(mode=0o600)
            readline.write_history_file(history)


class Repl:
    """Answers typed lines and remembers whether one failed."""

    def __init__(self, application: "Application", *, compact: bool) -> None:
        self._application = application
        self._compact = compact
        self.failed = False

    def answer(self, line: str) -> None:
        """Print the answer to one line, or its error."""
        try:
            self._answer(line)
        except EfritError as error:
            self.failed = True
            complain_about_call(error)
        sys.stdout.flush()

    def _answer(self, line: str) -> None:
        if line == "help":
            print(_HELP)
        elif line == "methods":
            print("\n".join(self._application.method_names()))
        elif line[:1] in {"{", "["}:
            self._answer_json_rpc(parse(line.encode(errors="surrogateescape")))
        elif line:
            method, _, params = line.partition(" ")
            raw = params.encode(errors="surrogateescape")
            given = parse(raw) if params.strip() else None
            self._print(self._application.call(method, _mapping(given)))

    def _answer_json_rpc(self, message: Any) -> None:
        members = message if isinstance(message, list) else [message]
        replies = [reply for reply in map(self._reply, members) if reply is not None]
        self.failed |= any("error" in reply for reply in replies)
        if replies:
            self._print(replies if isinstance(message, list) else replies[0])

    def _reply(self, member: Any) -> dict[str, Any] | None:
        """Return the reply to one JSON-RPC request; None for a notification."""
        from efrit_budget.wire.request import error_reply, request_of, success_reply

        request = request_of(member)
        if isinstance(request, dict):
            return request
        try:
            result = self._application.call(request.method, _mapping(member.get("params")))
        except EfritError as error:
            return None if request.is_notification else error_reply(error, request.id)
        return None if request.is_notification else success_reply(result, request.id)

    def _print(self, value: Any) -> None:
        print_json(value, compact=self._compact)


def _mapping(params: Any) -> dict[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise InvalidParamsError("the parameters must be a JSON object")
    return params
