"""Find the names that a file uses, and the form in which files use a definition.

A form is a name with what shows how it is used: `name(` is a call, `.name(` the call of a method,
`'name` a call or a quoted name in Lisp, and `name` any use at all.
"""

import re

LISP = (".el", ".lisp", ".lsp", ".cl", ".scm", ".ss", ".rkt", ".clj", ".cljs", ".cljc", ".fnl")
HASH = (".py", ".pyi", ".rb", ".cr", ".sh", ".pl", ".pm", ".r", ".jl", ".ex", ".exs", ".nim")
"""The endings of files in which `#` begins a comment."""
BEHIND_MODULES = (".go", ".ex", ".exs")
"""The endings of files that call functions of other files behind the name of a module."""
FUNCTIONS = ("function", "func", "subroutine", "procedure", "inline", "subst")
METHODS = ("method", "member", "singletonMethod")
LISP_BYTES = tuple(map(str.encode, LISP))
FORMS = {kind.encode(): b"%b(" for kind in FUNCTIONS} | {kind.encode(): b".%b(" for kind in METHODS}
NAME = rb"A-Za-z_$\x80-\xff"
TEXTS = (
    rb'"(?:""(?:[^"]++|"(?!""))*+(?:""")?+|(?:[^"\\\n]++|\\.){0,100}+")'
    rb"|'(?:[^'\\\n]++|\\.){0,100}+'"
)
"""Texts in quotes. What has no end on its line is no text; the number limits how much of a line of
quotes is read again and again to find that."""


def _finder(sign: bytes, comment: bytes) -> re.Pattern[bytes]:
    """Return a regex that finds uses outside of comments, which begin with a sign, and of texts.

    Its matches follow each other without a gap, so that a large file takes no longer than small
    ones.
    """
    use = rb"(\.?[" + NAME + rb"][\w" + NAME + rb"]*+\(?)"
    others = rb"[^\"'." + sign + NAME + rb"]*+"
    return re.compile(rb"%b(?:%b|%b|%b|.?)" % (others, TEXTS, comment, use))


HASH_USES = _finder(b"#", rb"#[^\n]*+")
USES = _finder(b"/", rb"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+")
LISP_USES = re.compile(
    rb"[^\"';(\\]*+"
    rb'(?:"(?:[^"\\]++|\\[\s\S])*+"?+|;[^\n]*+|\\.'
    rb"|([('][A-Za-z_*+\x80-\xff][\w$*+!?<>=/\x80-\xff-]*+)|[\s\S]?)"
)


def find_uses(name: str, data: bytes) -> bytes:
    """Return the distinct forms in the content of a file of this name, with spaces between."""
    if name.endswith(LISP):
        return b" ".join(set(LISP_USES.findall(data))).replace(b"(", b"'")
    found = b" ".join(set((HASH_USES if name.endswith(HASH) else USES).findall(data)))
    return found.translate(None, b".") if name.endswith(BEHIND_MODULES) else found


def split_uses(uses: bytes) -> list[bytes]:
    """Return the forms that `find_uses` found, and the names alone of all but Lisp's."""
    return uses.split(b" ") + uses.translate(None, b".(").split(b" ")


def form_of(file: bytes, kind: bytes) -> bytes:
    """Return the form in which other files use a definition; `%b` stands for its name."""
    if file.endswith(LISP_BYTES):
        return b"'%b"
    return FORMS.get(kind, b"%b")
