#!/usr/bin/python3
"""A screen of a terminal as a page: text with colours, as `tmux capture-pane -e -p` prints it, becomes HTML.

    scripts/terminal_page.py <SCREEN >PAGE
"""
import html
import re
import sys

COLOURS = ["#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5"]
STYLES = {1: "font-weight:bold", 2: "opacity:0.65", 7: "background:#d4d4d4;color:#1e1e1e"}
PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>drps-top</title>
<style>body{margin:0;background:#1e1e1e}pre{margin:0;padding:12px;color:#d4d4d4;font:14px/1.25 "DejaVu Sans Mono",monospace}</style>
<pre>%s</pre></html>"""


def style_of(codes):
    """CSS of the codes that hold: attributes, and colours of the text."""
    found = [STYLES[code] for code in codes if code in STYLES]
    found += ["color:" + COLOURS[code - 30] for code in codes if 30 <= code <= 37]
    return ";".join(found)


def take(codes, more):
    """The codes that hold after a sequence: 0 ends all, 39 a colour."""
    for code in more:
        if code == 0:
            codes = []
        elif code == 39:
            codes = [c for c in codes if not 30 <= c <= 37]
        else:
            codes = codes + [code]
    return codes


def page_of(text):
    codes, out = [], []
    for part in re.split(r"(\x1b\[[0-9;]*m)", text.rstrip("\n")):
        if part.startswith("\x1b["):
            codes = take(codes, [int(code or 0) for code in part[2:-1].split(";")])
        elif part:
            out.append('<span style="%s">%s</span>' % (style_of(codes), html.escape(re.sub(r"\x1b.", "", part))))
    return PAGE % "".join(out)


sys.stdout.write(page_of(sys.stdin.read()) + "\n")
