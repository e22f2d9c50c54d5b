"""Options by which ctags finds definitions that it does not know itself."""

from collections.abc import Iterator, Mapping

EMACS_LISP = (
    *("--kinddef-EmacsLisp=S,struct,structures", "--kinddef-EmacsLisp=t,test,tests"),
    *(
        f"--regex-EmacsLisp=/^\\(({starts})[ \\t]+\\(?([^ \\t()]+)/\\2/{kind}/"
        for starts, kind in (
            ("cl-defun|cl-defmethod|cl-defgeneric|cl-defsubst", "f"),
            ("cl-defmacro", "m"),
            ("cl-defstruct|defclass", "S"),
            ("ert-deftest", "t"),
            ("defvar-local|defvar-keymap", "v"),
        )
    ),
)
ENDINGS = (
    "--langmap=TypeScript:+.tsx.mts.cts",
    "--langmap=JavaScript:+.mjs.cjs.jsx",
    "--langmap=Scheme:+.rkt",
)
"""Endings of files in languages that ctags knows."""
MODIFIERS = (
    "pub|export|public|private|protected|internal|fileprivate|open|final|static|abstract|override"
    "|sealed|case|implicit|inline|lazy|async|mutating|extern|external|extend|indirect|rec|virtual"
)
NAME = r"([A-Za-z_$][A-Za-z0-9_$]*)"
KINDS = {
    "function": "f,function",
    "class": "c,class",
    "interface": "i,interface",
    "struct": "s,struct",
    "enum": "e,enum",
    "type": "t,type",
    "module": "m,module",
    "macro": "a,macro",
    "object": "o,object",
    "trait": "r,trait",
    "block": "b,block",
}
BY_KEYWORD: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "Crystal": (
        ".cr",
        {"function": "def", "class": "class", "struct": "struct", "module": "module|lib"}
        | {"macro": "macro", "enum": "enum"},
    ),
    "Dart": (".dart", {"class": "class|mixin|extension", "enum": "enum", "type": "typedef"}),
    "FSharp": (
        ".fs.fsx.fsi",
        {"function": "let|let rec|let inline|and", "type": "type", "module": "module"},
    ),
    "GraphQL": (
        ".graphql.gql",
        {"type": "type|input|union|scalar", "interface": "interface", "enum": "enum"},
    ),
    "Groovy": (
        ".groovy.gradle",
        {"function": "def|void", "class": "class", "interface": "interface|trait", "enum": "enum"}
        | {"block": "task"},
    ),
    "Hcl": (".tf.hcl", {}),
    "Nim": (
        ".nim",
        {"function": "proc|func|method|iterator|converter|template", "macro": "macro"},
    ),
    "Scala": (
        ".scala.sc",
        {"function": "def", "class": "class", "object": "object", "trait": "trait"}
        | {"type": "type", "enum": "enum"},
    ),
    "Solidity": (
        ".sol",
        {"class": "contract|library", "interface": "interface", "function": "function|modifier"}
        | {"struct": "struct", "enum": "enum"},
    ),
    "Swift": (
        ".swift",
        {"function": "func", "class": "class|actor|extension", "struct": "struct"}
        | {"interface": "protocol", "enum": "enum", "type": "typealias"},
    ),
    "Zig": (".zig", {"function": "fn"}),
}
"""By language, the endings of its files, and the words that begin a definition of each kind."""
BY_REGEX = (
    (
        "Dart",
        r"^ *(static +)?[A-Za-z_][A-Za-z0-9_<>,?]* +(get +)?([A-Za-z_]+)\([^;]*[{>]",
        3,
        "function",
    ),
    ("Hcl", r'^(resource|data) +"[^"]*" +"([^"]+)"', 2, "block"),
    ("Hcl", r'^(variable|output|module|provider) +"([^"]+)"', 2, "block"),
    ("Nim", rf"^ +{NAME}\*? *= *(ref +)?(object|enum|tuple)", 1, "type"),
    ("Zig", rf"^ *(pub +)?const +{NAME} *= *(extern +|packed +)?struct", 2, "struct"),
    ("Zig", rf"^ *(pub +)?const +{NAME} *= *(enum|union|error)", 2, "enum"),
)
"""Other definitions: the language, a regex of their line, its group with the name, and the kind."""


def _options() -> Iterator[str]:
    """Yield the options that define the languages which ctags lacks."""
    for language, (endings, words) in BY_KEYWORD.items():
        # A later ctags may know the language under its plain name.
        yield f"--langdef=Efrit{language}"
        yield f"--langmap=Efrit{language}:{endings}"
        for kind, word in words.items():
            regex = rf"^[ \t]*(({MODIFIERS})[ \t]+)*({word})[ \t]+{NAME}"
            yield f"--regex-Efrit{language}=/{regex}/\\4/{KINDS[kind]}/"
    for language, regex, group, kind in BY_REGEX:
        yield f"--regex-Efrit{language}=/{regex}/\\{group}/{KINDS[kind]}/"


LANGUAGES = (*EMACS_LISP, *ENDINGS, *_options())
