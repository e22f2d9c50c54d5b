"""`efrit-budget completion`: print what completes the command in a shell."""

import argparse

NAME = "completion"
HELP = "Print the completion of this command for a shell."
EXAMPLES = """  efrit-budget completion bash

Write it to a file, and a new shell has it:

  bash  ~/.local/share/bash-completion/completions/efrit-budget
  zsh   _efrit-budget, in a folder of $fpath
  fish  ~/.config/fish/completions/efrit-budget.fish
"""

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the name of the shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete the command in")


def run(arguments: argparse.Namespace) -> int:
    """Print the completion of the whole command line, made of its parser."""
    import shtab

    from efrit_budget.cli.parser import build_parser

    parser = build_parser()
    _mark_files(parser)
    print(shtab.complete(parser, arguments.shell))
    return 0


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Have the arguments of a parser and its subcommands that name files complete as files."""
    import shtab

    kinds = {"DIR": shtab.DIRECTORY, **dict.fromkeys(("FILE", "PATH", "FILE|NAME"), shtab.FILE)}
    for action in parser._actions:  # noqa: SLF001  argparse offers no other way to them
        if isinstance(action.choices, dict):
            for inner in action.choices.values():
                if isinstance(inner, argparse.ArgumentParser):
                    _mark_files(inner)
        elif action.metavar in kinds:
            action.complete = kinds[str(action.metavar)]  # type: ignore[attr-defined]
