"""The sites in a file that can be changed, those that are excluded, and the draw."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from tests.mutants.draw import ChangedError, Mutant, drawn
from tests.mutants.sites import sites_under


def changes(folder: Path, text: str) -> set[tuple[str, str]]:
    """Return all changes of a file with this text, as the code before and after."""
    room = folder / "room"
    room.mkdir(exist_ok=True)
    (room / "toy.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return {
        (site.before, choice) for site in sites_under(folder, ["room"]) for choice in site.choices
    }


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("x = a < b", "a < b", "(a <= b)"),
        ("x = a == b", "a == b", "(a != b)"),
        ("x = a is None", "a is None", "(a is not None)"),
        ("x = a < b < c", "a < b < c", "(a < b <= c)"),
        ("x = a - b", "a - b", "(a + b)"),
        ("x += b", "x += b", "x -= b"),
        ("x = a and b", "a and b", "(a or b)"),
        ("x = not a", "not a", "(a)"),
        ("x = 7", "7", "8"),
        ("x = 7", "7", "(6)"),
        ("x = 0.5", "0.5", "1.5"),
        ("x = True", "True", "False"),
        ("x = min(a, b)", "min", "max"),
        ("x = a[b:c]", "b", ""),
        ("x = a if b else c", "b", "(not (b))"),
        ("x = [a for a in b if c]", "c", "(not (c))"),
        ("a.b = c", "a.b = c", "pass"),
        ("a[b] = c", "a[b] = c", "pass"),
        ("a(b)", "a(b)", "pass"),
        ("raise a", "raise a", "pass"),
    ],
)
def test_a_line_can_be_changed(tmp_path: Path, line: str, before: str, after: str) -> None:
    """Each kind of change is tried, at the level of the module."""
    assert (before, after) in changes(tmp_path, line)


def test_functions_loops_and_defaults_can_be_changed(tmp_path: Path) -> None:
    """Only code inside functions is changed."""
    found = changes(
        tmp_path,
        """
        def first(most=3):
            for each in most:
                if each:
                    break
            while most:
                continue
            return most
        """,
    )
    expected = {("3", "4"), ("break", "continue"), ("continue", "break")}
    assert expected | {("each", "(not (each))"), ("return most", "return None")} <= found


def test_texts_annotations_and_logs_are_left_alone(tmp_path: Path) -> None:
    """The file has no site."""
    text = '''
        """A text."""
        from __future__ import annotations
        __all__ = ["a"]
        if TYPE_CHECKING:
            import b
        QUERY = "SELECT 1 WHERE a < 2" + f"{1 + 1}"

        @dataclass(frozen=True)
        class A:
            """A text."""
            a: Literal[1] | None

        def c(a: Literal[1] = None) -> Literal[2]:
            """A text."""
            log.info("%d", 1 + 1)
            for each in zip(a, b, strict=True):
                x = each
            return None
    '''
    assert changes(tmp_path, text) == set()


def test_every_mutant_is_a_program(tmp_path: Path) -> None:
    """The code around a change, and letters of several bytes, do not matter."""
    text = """
        def ä(one, two=(1, 2)):
            word = "ä"; rest = [each for each in one if each > 1 and not two]
            if not rest: raise ValueError
            elif rest[1:-1] == two: one.rest = rest
            return (word
                    if len(rest) < 2
                    else rest)
        """
    changes(tmp_path, text)
    mutants = drawn(sites_under(tmp_path, ["room"]))
    texts = {mutant.text(tmp_path) for mutant in mutants}
    original = (tmp_path / "room" / "toy.py").read_text(encoding="utf-8")
    assert len(texts) == len(mutants) > 10
    assert original not in texts
    assert all(ast.parse(changed) for changed in texts)


def drawn_from(folder: Path, text: str, count: int, seed: int) -> list[Mutant]:
    """Draw mutants from a file with this text."""
    changes(folder, text)
    return drawn(sites_under(folder, ["room"]), count, seed)


def test_a_draw_is_the_same_each_time_and_another_for_another_number(tmp_path: Path) -> None:
    """The draw depends on the code and the number alone."""
    text = "\n".join(f"x{number} = a < {number}" for number in range(50))
    first = drawn_from(tmp_path, text, 20, seed=1)
    assert first == drawn_from(tmp_path, text, 20, seed=1)
    assert len({mutant.site.start for mutant in first}) == 20
    assert first != drawn_from(tmp_path, text, 20, seed=2)


def test_a_mutant_keeps_its_name_when_lines_move(tmp_path: Path) -> None:
    """Results recorded for a mutant still belong to it."""
    before = drawn_from(tmp_path, "def a(b):\n    return b < 1", 9, seed=1)
    after = drawn_from(tmp_path, "import c\n\n\ndef a(b):\n    return b < 1", 9, seed=1)
    assert [mutant.id for mutant in before] == [mutant.id for mutant in after]
    assert [mutant.site.line for mutant in before] != [mutant.site.line for mutant in after]


def test_a_file_that_was_edited_since_the_draw_gives_no_mutant(tmp_path: Path) -> None:
    """The change would hit another place than the one reported."""
    (mutant,) = drawn_from(tmp_path, "def a(b):\n    return b", 9, seed=1)
    assert mutant.text(tmp_path) == "def a(b):\n    return None"
    changes(tmp_path, "import c\ndef a(b):\n    return b")
    with pytest.raises(ChangedError, match=r"room/toy\.py was edited"):
        mutant.text(tmp_path)
