"""Bodies of many paths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from efrit_budget.project.paths import meant_name, shown_name
from efrit_budget.results.trees import of_tree

NAMES = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=6)
FOLDERS = st.lists(NAMES, max_size=3).map(lambda parts: "".join(f"{part}/" for part in parts))


@given(st.dictionaries(FOLDERS, st.sets(NAMES, min_size=1, max_size=4).map(list), max_size=5))
def test_each_path_of_a_tree_can_be_read_from_its_text(tree: dict[str, list[str]]) -> None:
    body = of_tree("files", tree, shown_name, {})
    told = body.data_of(0, len(body.text))["files"]
    assert [meant_name(path) for path in told] == [
        folder + name for folder in sorted(tree) for name in sorted(tree[folder])
    ]


def test_a_folder_is_told_once_and_the_names_in_it_below() -> None:
    body = of_tree("files", {"b/": ["z", "y"], "": ["x"], "b/c/": ["w"]}, shown_name, {"k": 1})
    assert body.text == "x\nb/\ny\nz\nb/c/\nw\n"
    assert body.whole_count == 4
    assert body.data_of(2, len(body.text)) == {"k": 1, "files": ["b/y", "b/z", "b/c/w"]}
