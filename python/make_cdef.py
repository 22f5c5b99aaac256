#!/usr/bin/python3
"""Prints the declarations of the public header as CFFI takes them.

    python/make_cdef.py > python/drps/_cdef.h

The printed text is kept in the tree, so that installing needs no compiler. A test compares it with the header.
"""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def one_file(header: str, seen: set) -> str:
    """The header with the tree's own includes in place, each once, and without the system's."""
    if header in seen:
        return ""
    seen.add(header)
    lines = []
    for line in (ROOT / header).read_text(encoding="utf-8").splitlines():
        own = re.match(r'\s*#\s*include\s+"(.*)"', line)
        if own:
            lines.append(one_file(own[1], seen))
        elif not re.match(r"\s*#\s*include\s+<", line):
            lines.append(line)
    return "\n".join(lines)


def declarations(header: str = "api/drps.h") -> str:
    text = subprocess.run(
        ["cc", "-E", "-P", "-D__attribute__(x)=", "-"],
        input=one_file(header, set()), capture_output=True, text=True, check=True,
    ).stdout
    # One statement a line. What has a va_list or is not for programs in other languages is left out.
    statements = re.findall(r"[^;{}]*(?:\{[^{}]*\}[^;{}]*)*;", text)
    words = (" ".join(s.split()) for s in statements)
    return "\n".join(w for w in words if "va_list" not in w and "drps_err_set" not in w and "drps_err_context" not in w) + "\n"


if __name__ == "__main__":
    print(declarations(), end="")
