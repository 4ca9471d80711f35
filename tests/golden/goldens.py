"""The golden commands of `commands.txt`, a line each: name, words after ``seqray``, ``< FILE`` for its input.

Each runs in a folder of its own. ``@`` stands for the folder of inputs, ``name/`` of another command for the
folder of that command, which comes earlier in the table. ``process-`` runs in a process begun for it alone,
``python-`` calls a function of `verbs`.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("commands.txt")
VERBS = (
    "predict scan gather compare summary explain negatives audit split pretrain train evaluate calibrate "
    "prefilter export models completion"
)
# Verbs that compute: all get one thread, so that sums have one order.
THREADED = ("predict", "scan", "explain", "train", "pretrain", "evaluate", "calibrate", "prefilter")


@dataclass(frozen=True)
class Command:
    """One command, in a folder of its name."""

    name: str
    words: tuple[str, ...]  # after ``seqray``; of ``python-`` the name of a function of `verbs`
    stdin: str = ""  # its standard input; empty for none


def commands() -> list[Command]:
    """All commands, in the order in which they run."""
    helps = [Command(f"help-{verb}", (verb, "--help")) for verb in VERBS.split()]
    lines = [line.split(None, 1) for line in TABLE.read_text().splitlines() if line]
    names = [name for name, _ in lines]
    return helps + [_command(name, text, names) for name, text in lines]


def _command(name: str, text: str, names: list[str]) -> Command:
    text, _, stdin = text.partition(" < ")
    words = [_place(word, names) for word in shlex.split(text)]
    if words[0] in THREADED and not name.startswith(("help", "python")):
        words += ["--threads", "1"]
    return Command(name, tuple(words), _place(stdin, names))


def _place(word: str, names: list[str]) -> str:
    head, equals, path = word.rpartition("=")
    if path.split("/")[0] in names and "/" in path:
        path = f"../{path}"
    return f"{head}{equals}{path}".replace("@", "../inputs/")
