"""Commands as tests give them: in this process by the fixture ``run``, in one of its own by ``process``.

    run("predict in.fa --threshold 0.5 --model", model).rows    # must end with exit status 0
    run.refused("predict none.fa --model", model, names="none.fa")
    scan = run.to("scan --model", model)                        # the same for one verb

Words are given as a shell has them: a string is divided at its spaces, unless quotes hold them together; a
path or a number is one word, and so is each item of a list. Both fixtures work in the folder ``tmp_path``.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from seqray.cli.main import main
from tables import facts, table

Word: TypeAlias = str | Path | float | Sequence["str | Path | float"]


def words_of(*words: Word) -> list[str]:
    """The words of a command line."""
    found: list[str] = []
    for word in words:
        if isinstance(word, str):
            found += shlex.split(word)
        elif isinstance(word, Sequence):
            found += map(str, word)
        else:
            found.append(str(word))
    return found


def repeated(option: str, values: Iterable[str | Path]) -> list[str]:
    """An option once for each of its values."""
    return [word for value in values for word in (option, str(value))]


class Ended(NamedTuple):
    """How a command ended: exit status, standard output, standard error."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, str]]:
        """Rows of the table on standard output, by the names of its columns."""
        return table(self.out)

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the header of the table on standard output."""
        return facts(self.out)


class Run:
    """Calls of ``seqray`` in this process that begin with the same words; ``capture`` reads what they say."""

    def __init__(self, capture: pytest.CaptureFixture[str], *words: Word) -> None:
        self._capture, self._words = capture, words_of(*words)

    def to(self, *words: Word) -> Run:
        """Calls that begin with these words: a verb, or with its options."""
        return Run(self._capture, self._words, *words)

    def __call__(self, *words: Word, status: int = 0) -> Ended:
        """Run a command, which must end with this exit status."""
        self._capture.readouterr()
        ended = Ended(main([*self._words, *words_of(*words)]), *self._capture.readouterr())
        assert ended.status == status, ended.err
        return ended

    def refused(self, *words: Word, names: str | Sequence[str] = ()) -> str:
        """Run a command that must be refused: by one line that names these, exit 2, and no new file.

        Gives the line after ``seqray: error: ``.
        """
        before = sorted(Path().iterdir())
        ended = self(*words, status=2)
        assert (ended.out, ended.err.count("\n")) == ("", 1), ended.err
        error, colon, line = ended.err.rstrip("\n").partition("seqray: error: ")
        assert (error, colon) == ("", "seqray: error: "), ended.err
        missing = [name for name in ([names] if isinstance(names, str) else names) if name not in line]
        assert not missing, line
        assert sorted(Path().iterdir()) == before
        return line


class Process:
    """Calls of ``seqray`` in a process of its own; ``folder`` holds the executable."""

    def __init__(self, folder: Path) -> None:
        self._program = str(folder / "seqray")

    def begin(self, *words: Word, **streams: Any) -> subprocess.Popen[bytes]:
        """Begin a command, with pipes for its streams unless others are given."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([self._program, *words_of(*words)], **pipes | streams)

    def __call__(
        self, *words: Word, given: bytes = b"", status: int = 0, **streams: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command on a standard input; it must end with this exit status."""
        process = self.begin(*words, **streams)
        out, err = process.communicate(given, timeout=600)
        assert process.returncode == status, err
        return subprocess.CompletedProcess(process.args, status, out, err)
