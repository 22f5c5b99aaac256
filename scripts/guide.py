#!/usr/bin/env python3
"""Runs the commands of a guide and compares what they print with what the guide says.

Usage: scripts/guide.py check|write [--bin DIR] [--data DIR] [--all] [--keep DIR] PAGE...

A block of a page that begins with ```console is run, line by line. "$ " begins a command, "> " goes on with it; what
follows is its output, in which "..." stands for any lines. Commands of a page run in one folder, which has examples/
and bench/ of this repository. Words behind "console" say more:

    loose       numbers may be others: the output depends on when something happened
    slow        is run with --all alone
    needs=NAME  is run where --data has a set of this name; its files are beside the others then
    program=P   is run where there is a program P
    kill=PATH   the first command is killed (SIGKILL) as soon as there is this file or folder

A comment <!-- run: COMMAND --> is run, too, and may print anything; <!-- run needs=NAME: COMMAND --> has such words. It ends with 0 like all others, but for commands
whose output in the page has an error.

check: prints each difference; the exit status is 1 if there is one. Numbers are compared so: seconds and speeds may be
others, as may shares of time; sizes may differ by a factor of two, as free memory and disks do; all others are equal.
write: puts the numbers that were printed into the page. Lines whose words differ are left, and told.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
# A line of an epoch: what is behind the losses and metrics depends on the machine.
EPOCH = re.compile(rf"^( +\d+(?: +(?:{NUMBER}|-|nan|inf))+?) +{NUMBER} +{NUMBER} +{NUMBER} \w+ +{NUMBER} \w+ +{NUMBER} %$")
# Times, speeds and shares; all of a line that adds up times; memory that drps-index advises.
TIMES = re.compile(r"^  time ")
FREE = re.compile(rf"{NUMBER}(?= (?:s|ms|us|MB/s|MiB/s|GB/s|samples/s|%)(?:\W|$))")
SIZE = re.compile(rf"({NUMBER}) ?(B|[KMGT]iB)\b")
MEMORY = re.compile(r"(?<=--memory )\d+M|\d+M(?= (?:is the least|keeps))")


def fail(text):
    sys.exit(f"guide.py: {text}")


class Command:
    """A command, the lines of the page that show its output, and where these begin."""

    def __init__(self, text, line, flags, hidden=False):
        self.text, self.line, self.flags, self.hidden = text, line, flags, hidden
        self.output_at, self.expected = line + 1, []


def commands_of(page):
    commands, flags, command = [], None, None
    for number, line in enumerate(page):
        if flags is None:
            hidden = re.fullmatch(r"<!-- run([^:]*): (.*) -->", line)
            if hidden:
                commands.append(Command(hidden[2], number, set(hidden[1].split()), hidden=True))
            elif line.startswith("```console"):
                flags, command = set(line.split()[1:]), None
            elif line.startswith("```"):
                flags = "other"
        elif line == "```":
            flags = None
        elif flags != "other":
            if line.startswith("$ "):
                command = Command(line[2:], number, flags)
                commands.append(command)
                flags = {flag for flag in flags if not flag.startswith("kill=")}
            elif command is None:
                fail(f"line {number + 1}: a block begins without a command")
            elif line.startswith("> ") and not command.expected:
                command.text += "\n" + line[2:]
                command.output_at = number + 1
            else:
                command.expected.append(line)
    return commands


def shape(line):
    """The words of a line, without its numbers and however it is padded."""
    return re.sub(r"\s+", " ", re.sub(rf"0x[0-9a-f]+|\b[0-9a-f]{{16}}\b|-?{NUMBER}", "#", line)).strip()


def sizes_agree(one, other):
    pairs = list(zip(SIZE.findall(one), SIZE.findall(other)))
    values = [[float(n.replace(",", "")) * UNITS[unit] for n, unit in pair] for pair in pairs]
    return all(a == b or (a and b and 0.5 <= a / b <= 2) for a, b in values)


def plain(line):
    """What of a line is the same on each machine."""
    epoch = EPOCH.match(line)
    if epoch:
        line = epoch[1]
    if TIMES.match(line):
        return shape(line)
    for pattern in (SIZE, FREE, MEMORY):
        line = pattern.sub("#", line)
    return re.sub(r"\s+", " ", line).strip()


def lines_agree(expected, printed, loose):
    if shape(expected) != shape(printed):
        return False
    return loose or (plain(expected) == plain(printed) and (EPOCH.match(expected) or sizes_agree(expected, printed)))


def align(expected, printed, agree):
    """Pairs of indices (expected, printed) of lines that agree, or None; and the first line that found no partner."""
    farthest = 0

    def rest(i, j):
        """The pairs of expected[i:] with printed[j:]. "..." stands for as few lines as will do, at the top for as many."""
        nonlocal farthest
        farthest = max(farthest, i)
        if i == len(expected):
            return [] if j == len(printed) else None
        if expected[i] == "...":
            ends = range(j, len(printed) + 1) if i else range(len(printed), j - 1, -1)
            return next((found for k in ends if (found := rest(i + 1, k)) is not None), None)
        if j == len(printed) or not agree(expected[i], printed[j]):
            return None
        after = rest(i + 1, j + 1)
        return None if after is None else [(i, j), *after]

    return rest(0, 0), farthest


def values_of(command, name):
    return {flag.split("=")[1] for flag in command.flags if flag.startswith(name + "=")}


def why_not(command, arguments):
    """Why a command is not run; None: it is."""
    for name in sorted(values_of(command, "needs")):
        if not (arguments.data and (arguments.data / name).is_dir()):
            return f"needs the data {name}"
    for program in sorted(values_of(command, "program")):
        if not shutil.which(program):
            return f"needs the program {program}"
    return "slow" if "slow" in command.flags and not arguments.all else None


def kill_when_there(process, path):
    while process.poll() is None and not path.exists():
        time.sleep(0.001)
    process.kill()


def run(command, folder, environment):
    victim = next(iter(values_of(command, "kill")), None)
    process = subprocess.Popen(["bash", "-c", ("exec " if victim else "") + command.text], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    if victim:
        kill_when_there(process, folder / victim)
    printed = process.communicate(timeout=900)[0].splitlines()
    if process.returncode == -signal.SIGKILL:
        printed.append("Killed")  # as a shell says it
    return process.returncode, [line.rstrip() for line in printed]


def check_output(command, status, printed, where):
    """Prints what differs; returns how much."""
    wants_error = any("error:" in line or line == "Killed" for line in command.expected)
    if (status != 0) != wants_error:
        print(f"{where}: exit status {status}: {command.text}", *printed[-20:], sep="\n  | ")
        return 1
    if command.hidden or not command.expected:
        return 0
    loose = "loose" in command.flags
    pairs, missing = align(command.expected, printed, lambda e, p: lines_agree(e, p, loose))
    if pairs is not None:
        return 0
    said = command.expected[missing] if missing < len(command.expected) else "(nothing more)"
    print(f"{where}: {command.text}", f"said:    {said}", *(f"printed: {line}" for line in printed[:60]), sep="\n  ")
    return 1


def written_for(expected, printed):
    """1: the printed line takes the place of the other one: it has the same words, and is of the same epoch."""
    first = [line.split()[:1] for line in (expected, printed)]
    return shape(expected) == shape(printed) and (not EPOCH.match(expected) or first[0] == first[1])


def write_output(command, printed, page):
    pairs, _ = align(command.expected, printed, written_for)
    if pairs is None:
        return False
    for expected, at in pairs:
        page[command.output_at + expected] = printed[at]
    return True


def lay_out(folder, data, needs):
    for name in ("examples", "bench"):
        (folder / name).symlink_to(HERE / name)
    for name in sorted(needs):
        for path in (data / name).iterdir() if data and (data / name).is_dir() else ():
            if not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)


def go_through(path, arguments, folder):
    page = path.read_text().split("\n")
    commands = commands_of(page)
    lay_out(folder, arguments.data, set().union(*(values_of(c, "needs") for c in commands)))
    environment = dict(os.environ, PATH=f"{arguments.bin}:{os.environ['PATH']}", LC_ALL="C", COLUMNS="200")
    compared = different = 0
    skipped = []
    for command in commands:
        where = f"{path}:{command.line + 1}"
        reason = why_not(command, arguments)
        if reason:
            skipped.append(f"{where}: {reason}")
            continue
        status, printed = run(command, folder, environment)
        compared += bool(command.expected)
        if arguments.what == "write" and command.expected and write_output(command, printed, page):
            continue
        different += check_output(command, status, printed, where)
    if arguments.what == "write":
        path.write_text("\n".join(page))
    for line in skipped:
        print(f"not run: {line}")
    if not compared:
        fail(f"{path} has no output to compare")
    print(f"{path}: {len(commands) - len(skipped)} commands run, the output of {compared} compared, {different} differ")
    return different


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1].split("\n")[0], add_help=True)
    parser.add_argument("what", choices=["check", "write"])
    parser.add_argument("--bin", type=lambda p: Path(p).resolve(), default=HERE / "build/bin")
    parser.add_argument("--data", type=lambda p: Path(p).resolve())
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("pages", nargs="+", type=Path)
    arguments = parser.parse_args()
    different = 0
    for page in arguments.pages:
        with tempfile.TemporaryDirectory(prefix="drps-guide.") as temporary:
            folder = (arguments.keep or Path(temporary)).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            different += go_through(page, arguments, folder)
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
