"""Commands in processes of their own that begin at once: forks of one process that has loaded everything.

- `server`: loads a program, and forks for each call
- `client`: what a shell starts under the name of the command; it stands for the fork
"""

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes
    ----------
    status
        Exit status; the negative number of the signal that ended it.
    seconds
        From its beginning.
    messages
        Its standard error.
    """

    status: int
    seconds: float
    messages: str


class Forks:
    """Calls of a command, each in a fork of one process that has loaded all that the command needs.

    A fork has the arguments, the environment, the working folder and the streams of its call. Libraries were
    loaded with OMP_NUM_THREADS=1, and hashes are those of the process that was forked.

    Attributes
    ----------
    folder
        Holds an executable of the name of the command: first on PATH, it stands for the command.

    Parameters
    ----------
    command
        ``seqray`` or ``snakemake``.
    """

    def __init__(self, command: str) -> None:
        self._command = command

    def __enter__(self) -> Self:
        self._root = tempfile.TemporaryDirectory()
        self._socket = Path(self._root.name) / "socket"
        self.folder = Path(self._root.name) / "bin"
        self.folder.mkdir()
        executable = self.folder / self._command
        words = [sys.executable, "-IS", str(HERE / "client.py"), str(self._socket)]
        executable.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$0" "$@"\n')
        executable.chmod(0o755)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "server.py"), str(self._socket), self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()  # which ends at the end of its input
        self._root.cleanup()

    def run(
        self,
        words: list[str],
        folder: Path,
        *,
        signal: int = 0,
        delay: float = 0.0,
        streams: dict[str, str] | None = None,
        limits: dict[str, int] | None = None,
    ) -> Ended:
        """Run the command in a folder.

        Parameters
        ----------
        words, folder
            After the command, and the working folder; standard output and error go to files beside it.
        signal, delay
            Signal to be sent after this many seconds; 0 sends none.
        streams
            Maps 0, 1 and 2 to "closed" or "full".
        limits
            Maps AS (bytes beyond those in use), FSIZE and NOFILE to numbers.
        """
        job = {"words": [self._command, *words], "folder": str(folder), "environment": dict(os.environ)}
        job |= {"streams": streams or {}, "limits": limits or {}}
        names = (Path(os.devnull), folder.parent / "stdout", folder.parent / "stderr")
        files = [os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600) for name in names]
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._socket))
            socket.send_fds(server, [json.dumps(job).encode() + b"\n"], files)
            for file in files:
                os.close(file)
            replies = server.makefile()
            pid = json.loads(replies.readline())
            if signal:
                time.sleep(delay)
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    os.kill(pid, signal)
            status, seconds = json.loads(replies.readline())
        return Ended(status, seconds, names[2].read_text())
