#!/usr/bin/env python3
"""Make the Emacs package out of elisp/: its manual, its autoloads, a copy, or the package itself.

.ci/lisp.py manual FOLDER       writes efrit.info and dir into FOLDER, by makeinfo and install-info
.ci/lisp.py autoloads FOLDER    writes efrit-autoloads.el beside the Lisp files of FOLDER
.ci/lisp.py copy FOLDER         makes FOLDER anew with the Lisp files and their autoloads
.ci/lisp.py package FOLDER      writes efrit-VERSION.tar, for `package-install-file', into FOLDER
"""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

LISP = Path(__file__).resolve().parent.parent / "elisp"
MANUAL = LISP.parent / "docs" / "manual" / "efrit.texi"
PATTERNS = ("*.el", "*.info", "dir")
"""The files that are the package; the latter two are the manual."""
AUTOLOADS = "efrit-autoloads.el"
COOKIE = re.compile(r"^;;;###autoload(?: |\n(?=\())(.+(?:\n(?![(;]).*)*)", re.MULTILINE)
"""Matches a marked form, up to the next line that begins another one or a comment."""
DEFINITION = re.compile(r"\(defun ([^ ]+)")
INTERACTIVE = re.compile(r"\n  \(interactive\b")
HEADER = """\
;;; efrit-autoloads.el --- Commands of efrit  -*- lexical-binding: t; -*-

;; Made of the autoload cookies by .ci/lisp.py; changes are lost.

;;; Code:

(let ((folder (directory-file-name
               (file-name-directory (or load-file-name buffer-file-name)))))
  (add-to-list 'load-path folder)
  (with-eval-after-load 'info
    (add-to-list 'Info-additional-directory-list folder)))

"""
FOOTER = """
(provide 'efrit-autoloads)

;; Local Variables:
;; version-control: never
;; no-byte-compile: t
;; no-update-autoloads: t
;; End:
;;; efrit-autoloads.el ends here
"""


def write_manual(folder: Path) -> None:
    """Write the manual and its entry for Info's menu into a folder."""
    info, entries = folder / "efrit.info", folder / "dir"
    run("makeinfo", "--no-split", f"--output={info}", str(MANUAL))
    entries.unlink(missing_ok=True)
    run("install-info", f"--dir-file={entries}", str(info))


def run(program: str, *arguments: str) -> None:
    """Run a program of Texinfo, or exit and say that it is missing."""
    found = shutil.which(program)
    if found is None:
        sys.exit(f"{program} is missing, without which there is no manual: install texinfo")
    subprocess.run([found, *arguments], check=True)  # noqa: S603  our own


def lisp_files(folder: Path = LISP) -> list[Path]:
    """Return the files that the package consists of, but the autoloads."""
    found = {file for pattern in PATTERNS for file in folder.glob(pattern)}
    return sorted(file for file in found if file.name != AUTOLOADS)


def autoload(library: str, form: str) -> str:
    """Return a marked form of a library as it stands in the autoloads."""
    definition = DEFINITION.match(form)
    if definition is None:
        return form.rstrip()
    command = " nil t" if INTERACTIVE.search(form) else ""
    return f'(autoload \'{definition[1]} "{library}"{command})'


def write_autoloads(folder: Path) -> None:
    """Write the autoloads of the Lisp files of a folder, unless they stand there already."""
    forms = [
        autoload(file.stem, form)
        for file in lisp_files(folder)
        if file.suffix == ".el"
        for form in COOKIE.findall(file.read_text(encoding="utf-8"))
    ]
    file = folder / AUTOLOADS
    text = HEADER + "\n".join(forms) + "\n" + FOOTER
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        new = file.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(file)


def copy(folder: Path) -> None:
    """Make a folder anew with the Lisp files and their autoloads."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in lisp_files():
        shutil.copy(file, folder)
    write_autoloads(folder)


def write_package(folder: Path) -> Path:
    """Write the package into a folder, and return its file."""
    main = (LISP / "efrit.el").read_text(encoding="utf-8")
    name = f"efrit-{header('Version', main)}"
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"{name}.tar"
    with tarfile.open(package, "w", format=tarfile.USTAR_FORMAT) as archive:
        add(archive, f"{name}/efrit-pkg.el", definition(main).encode())
        for file in (*lisp_files(), LISP.parent / "LICENSE"):
            add(archive, f"{name}/{file.name}", file.read_bytes())
    return package


def definition(main: str) -> str:
    """Return the text of efrit-pkg.el, made of the headers in the text of the main file."""
    summary = main.partition(" --- ")[2].partition("  -*-")[0]
    keywords = " ".join(f'"{word}"' for word in header("Keywords", main).split(", "))
    return (
        f";;; efrit-pkg.el --- {summary}  -*- no-byte-compile: t; lexical-binding: nil -*-\n"
        f'(define-package "efrit" "{header("Version", main)}" "{summary}"\n'
        f"  '{header('Package-Requires', main)} :keywords '({keywords}))\n"
    )


def header(name: str, main: str) -> str:
    """Return the value of a header line in the text of the main file."""
    return main.partition(f"\n;; {name}: ")[2].partition("\n")[0]


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file to an archive; the same content gives the same archive each time."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["manual", folder]:
            write_manual(Path(folder))
        case ["autoloads", folder]:
            write_autoloads(Path(folder))
        case ["copy", folder]:
            copy(Path(folder))
        case ["package", folder]:
            print(write_package(Path(folder)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
