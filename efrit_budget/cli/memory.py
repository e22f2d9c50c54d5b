"""`efrit-budget memory`: save, read, delete and transfer observations."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from efrit_budget.cli.arguments import (
    add_global_flags,
    add_json_flag,
    contents,
    number_in,
    run_action,
)
from efrit_budget.cli.memory_store import (
    add_filters,
    filters_of,
    natural,
    opened_memory,
    positive,
)
from efrit_budget.cli.output import ask_consent, complain, print_json, print_text, replacing

if TYPE_CHECKING:
    from efrit_budget.memory.observation import Observation
    from efrit_budget.memory.store import MemoryStore

NAME = "memory"
HELP = "Save, read, delete, export and import memories."
EXAMPLES = """  efrit-budget memory save --title 'Retries back off' --content - < note.md
  efrit-budget memory list --project thesis
  efrit-budget memory get 7
  efrit-budget memory timeline 7
  efrit-budget memory delete 7 --yes
  efrit-budget memory export -o memory.jsonl
  efrit-budget memory import memory.jsonl
"""
run = run_action


def configure(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each action."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    for name, text, set_up, act in (
        ("save", "save a memory", _configure_save, _save),
        ("get", "print memories whole", _configure_get, _get),
        ("list", "list memories, the latest first", _configure_list, _list),
        ("timeline", "list the memories around one", _configure_timeline, _timeline),
        ("delete", "delete memories", _configure_delete, _delete),
        ("export", "write memories as JSON lines", _configure_export, _export),
        ("import", "import such lines", _configure_import, _import),
    ):
        example = next(line for line in EXAMPLES.splitlines() if f" {name} " in f"{line} ")
        added = actions.add_parser(
            name, help=text, description=text, epilog=f"example: {example.strip()}"
        )
        added.set_defaults(act=act)
        add_global_flags(added)
        set_up(added)


# Saving


def _configure_save(parser: argparse.ArgumentParser) -> None:
    share = number_in(float, 0, 1, "{!r} is not a number from 0 to 1")
    parser.add_argument("--title", metavar="T", required=True, help="a title of one line")
    parser.add_argument("--content", metavar="C", required=True, help="the text; - reads stdin")
    parser.add_argument("--project", metavar="P", default="", help="the project it belongs to")
    parser.add_argument("--kind", metavar="K", default="note", help="its kind (default: note)")
    parser.add_argument("--tag", metavar="T", action="append", default=[], help="tag (repeatable)")
    parser.add_argument(
        "--importance", metavar="X", type=share, default=0.5, help="0 to 1 (default: 0.5)"
    )
    parser.add_argument("--topic", metavar="KEY", help="a key; what was saved under it is revised")
    add_json_flag(parser)


def _save(arguments: argparse.Namespace) -> int:
    from efrit_budget.memory.observation import Draft

    content = arguments.content
    if content == "-":
        content = contents(content).decode("utf-8", "replace")
    draft = Draft(
        title=arguments.title,
        content=content,
        project=arguments.project,
        kind=arguments.kind,
        topic_key=arguments.topic,
        tags=tuple(arguments.tag),
        importance=arguments.importance,
        tool="command line",
    )
    with opened_memory(arguments) as store:
        saved = store.save(draft)
    if arguments.as_json:
        print_json(vars(saved), compact=True)
    else:
        other = f" (not kept: another {', '.join(saved.left_out)})" if saved.left_out else ""
        print(f"#{saved.id} {saved.outcome}, revision {saved.revision}{other}")
    return 0


# Reading


def _configure_get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="+", type=positive)
    parser.add_argument("--revisions", action="store_true", help="print earlier revisions too")
    add_json_flag(parser)


def _get(arguments: argparse.Namespace) -> int:
    with opened_memory(arguments) as store:
        stored = [store.get(number) for number in arguments.ids]
        found = [one if one is not None and one.deleted is None else None for one in stored]
        for observation in filter(None, found):
            _show(store, observation, arguments)
            store.note_access(observation.id)
    for number, there in zip(arguments.ids, found, strict=True):
        if there is None:
            complain(f"there is no memory #{number}")
    return 0 if all(found) else 1


def _show(store: "MemoryStore", observation: "Observation", arguments: argparse.Namespace) -> None:
    from efrit_budget.memory.packs import NEWLINES, Markdown, facts_of

    earlier = store.revisions(observation.id) if arguments.revisions else []
    if arguments.as_json:
        more = {"revision": observation.revision, "topic_key": observation.topic_key}
        revisions = {"revisions": [vars(each) for each in earlier]} if arguments.revisions else {}
        print_json({**facts_of(observation), **more, **revisions}, compact=True)
        return
    print_text(f"#{observation.id} {Markdown().entry(observation).removeprefix('## ')}\n")
    for each in reversed(earlier):
        print_text(f"Revision {each.revision}: {each.title}\n\n{each.content.strip(NEWLINES)}\n")


def _configure_list(parser: argparse.ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument("--limit", metavar="N", type=positive, default=20, help="default: 20")
    add_json_flag(parser)


def _list(arguments: argparse.Namespace) -> int:
    from efrit_budget.memory.packing import Pack
    from efrit_budget.memory.packs import ListJson, ListLines

    filters = filters_of(arguments)
    with opened_memory(arguments) as store:
        latest = store.recent(filters, arguments.limit)
        pack = Pack(store.count(filters), None, filters.project, memories=tuple(latest))
    form = ListJson() if arguments.as_json else ListLines()
    print_text(form.text(pack, 0))
    return 0


def _configure_timeline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=positive)
    for side in ("before", "after"):
        parser.add_argument(
            f"--{side}",
            metavar="N",
            type=natural,
            default=5,
            help=f"the most {side} it (default: 5)",
        )
    add_json_flag(parser)


def _timeline(arguments: argparse.Namespace) -> int:
    from efrit_budget.memory.packs import ListLines, facts_of, index_of
    from efrit_budget.memory.wording import IN_SESSION, navigation_hint

    with opened_memory(arguments) as store:
        line = store.timeline(arguments.id, arguments.before, arguments.after)
    if line is None:
        complain(f"there is no memory #{arguments.id}")
        return 1
    memories = [*line.before, line.focus, *line.after]
    if arguments.as_json:
        facts = {side: [*map(index_of, getattr(line, side))] for side in ("before", "after")}
        print_json({**facts, "focus": facts_of(line.focus), "total": line.total}, compact=True)
        return 0
    for each in memories:
        print_text(f"{'>' if each.id == arguments.id else ' '} {ListLines().entry(each)}")
    hint = navigation_hint(len(memories), line.total, IN_SESSION)
    if hint:
        print(hint)
    return 0


# Deleting


def _configure_delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="+", type=positive)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--for-good", action="store_true", help="also remove them from the disk")
    add_json_flag(parser)


def _delete(arguments: argparse.Namespace) -> int:
    numbers: list[int] = list(dict.fromkeys(arguments.ids))
    names = ", ".join(f"#{number}" for number in numbers)
    how = " for good" if arguments.for_good else ""
    if not arguments.yes and not ask_consent(f"Delete {names}{how}?", "nothing was deleted"):
        return 1
    with opened_memory(arguments) as store:
        delete = store.erase if arguments.for_good else store.delete
        deleted = [number for number in numbers if delete(number)]
    for number in numbers:
        if number not in deleted:
            complain(f"there is no memory #{number}")
    if arguments.as_json:
        print_json({"deleted": deleted}, compact=True)
    elif deleted:
        print(f"deleted: {', '.join(f'#{number}' for number in deleted)}")
    return 0 if len(deleted) == len(numbers) else 1


# Export and import


def _configure_export(parser: argparse.ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write it there, replacing the file"
    )


def _export(arguments: argparse.Namespace) -> int:
    from efrit_budget.memory.transfer import Export

    with opened_memory(arguments) as store:
        export = Export(store, filters_of(arguments))
        if arguments.output is None:
            for line in export.lines():
                sys.stdout.buffer.write(f"{line}\n".encode())
        else:
            with replacing(arguments.output) as stream:
                stream.writelines(f"{line}\n" for line in export.lines())
    _tell_of_relations(export.leading_out)
    return 0


def _tell_of_relations(leading_out: int) -> None:
    if leading_out:
        complain(f"{leading_out} relations to other memories were left out")


def _configure_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON lines; - reads stdin")
    add_json_flag(parser)


def _import(arguments: argparse.Namespace) -> int:
    from efrit_budget.memory.transfer import imported, records

    found = records(contents(arguments.file).splitlines())
    with opened_memory(arguments) as store:
        merged = imported(store, found)
    if arguments.as_json:
        print_json(vars(merged), compact=True)
        return 0
    print(f"{merged.new} new, {merged.updated} updated, {merged.there} already here")
    _tell_of_relations(merged.leading_out)
    return 0
