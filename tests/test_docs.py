"""The documentation runs: code as code, its output as printed, command lines at least through the parser.

A ``python`` block is executed; where a ``text`` block follows it directly, that is its standard output.
A line ``$ seqray ...`` in a ``console`` block is parsed by the command's own parser. A block marked
``console run`` is run in a shell, and what stands below each command is its standard output, where numbers
may differ in the digits that depend on the processor. A relative link names a file of the repository.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
from importlib import import_module
from itertools import pairwise

import pytest

from rerun import PAGES, ROOT, rerun, run, same, sessions
from seqray.cli.main import VERBS, Parser
from seqray.errors import ConfigError

FENCE = re.compile(r"^```(\w*)(?: run)?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def code_blocks(text: str) -> list[tuple[int, str, str | None]]:
    """Line, source and expected output of each ``python`` block."""
    blocks, found = [], list(FENCE.finditer(text))
    for block, after in pairwise([*found, None]):
        if block and block[1] == "python":
            follows = after and after[1] == "text" and not text[block.end() : after.start()].strip()
            line = text.count("\n", 0, block.start()) + 1
            blocks.append((line, block[2], after[2] if after and follows else None))
    return blocks


def command_lines(text: str) -> list[str]:
    """Arguments of every ``$ seqray`` line; one that ends in a backslash goes on."""
    consoles = "".join(block[2] for block in FENCE.finditer(text) if block[1] == "console")
    lines = consoles.replace("\\\n", " ").splitlines()
    return [found[1] for line in lines if (found := re.match(r"\$ (?:.*\| *)?seqray +(.*)", line))]


def parse(words: list[str]) -> argparse.Namespace:
    """Hand the words behind ``seqray`` to the parser of their verb."""
    parser = Parser(prog=words[0], allow_abbrev=False)
    import_module(VERBS[words[0]][0]).add_arguments(parser)
    return parser.parse_args(words[1:])


def run_block(source: str, name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), {"__name__": "docs"})
    return printed.getvalue()


CODE = [(page, *block) for page in PAGES for block in code_blocks(read(page))]
SESSIONS = [(page, session) for page in PAGES for session in sessions(read(page))]
COMMANDS = [(page, line) for page in PAGES for line in command_lines(read(page))]


@pytest.mark.parametrize(("page", "line", "source", "output"), CODE, ids=[f"{c[0]}:{c[1]}" for c in CODE])
def test_code_runs_and_prints_what_the_page_says(page, line, source, output, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    printed = run_block("\n" * line + source, page)
    assert output is None or printed == output


@pytest.mark.parametrize(("page", "session"), SESSIONS)
def test_sessions_show_what_is_printed(page, session, tmp_path):
    for command, shown in session:
        printed = run(command, tmp_path)
        assert same(printed, shown), f"$ {command}\n{printed}(python docs/rerun.py writes this to the page)"


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_command_lines_parse(page, command):
    words = shlex.split(re.split(r" (?:[|>]|2>) ?", command)[0], comments=True)
    assert words in (["--help"], ["--version"]) or parse(words)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", read(page))
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", prose)
    assert [t for t in targets if not ((ROOT / page).parent / t).exists()] == []


def test_the_readers_find_what_they_should():
    text = "```python\nprint(1)\n```\n```text\n1\n```\n\n```python\nx = 1\n```\nand\n\n```text\nfree\n```\n"
    assert code_blocks(text) == [(1, "print(1)\n", "1\n"), (8, "x = 1\n", None)]
    shell = (
        "```console\n$ seqray scan a.fa \\\n    --out b\noutput seqray x\n$ zcat a | seqray predict -\n```\n"
    )
    assert [shlex.split(c) for c in command_lines(shell)] == [
        ["scan", "a.fa", "--out", "b"],
        ["predict", "-"],
    ]
    shown = "```console run\n$ seqray a\n0.5 x\n$ seqray b\n```\n"
    assert sessions(shown) == [[("seqray a", "0.5 x\n"), ("seqray b", "")]]
    assert same("p\t0.91234\n", "p 0.91228\n")
    assert not same("p 0.92\n", "p 0.91\n")
    assert not same("p 0.91\nq\n", "p 0.91\n")
    assert not same("+", "-")
    assert rerun("a\n```console run\n$ echo 1\n2\n```\nb\n") == "a\n```console run\n$ echo 1\n1\n```\nb\n"
    with pytest.raises(RuntimeError):
        rerun("```console run\n$ exit 3\n```\n")
    assert parse(["models", "show", "ecoli-promoter"]).models == ["ecoli-promoter"]
    with pytest.raises(ConfigError):
        parse(["models", "--no-such-option"])
    with pytest.raises(NameError):
        run_block("undefined", "page")
