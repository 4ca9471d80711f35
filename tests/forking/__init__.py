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
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Ended(NamedTuple):
    """Exit status, or the negative number of the signal; seconds from the beginning; standard error."""

    status: int
    seconds: float
    messages: str


class Forks:
    """Calls of ``seqray`` or ``snakemake``, each in a fork of one process that has loaded what it needs.

    A fork has the arguments, the environment, the working folder and the streams of its call. Libraries were
    loaded with OMP_NUM_THREADS=1, and hashes are those of the process that was forked. The executable in
    ``folder``, first on PATH, stands for the command.
    """

    def __init__(self, command: str, root: Path) -> None:
        self.command, self.socket, self.folder = command, root / "socket", root / "bin"
        self.folder.mkdir()
        words = [sys.executable, "-IS", str(HERE / "client.py"), str(self.socket)]
        executable = self.folder / command
        executable.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$0" "$@"\n')
        executable.chmod(0o755)

    def run(
        self, words: list[str], folder: Path, *, signal: int = 0, delay: float = 0.0, **job: dict[str, object]
    ) -> Ended:
        """Run the command in a folder; standard output and error go to files beside it.

        A signal is sent after a delay in seconds. ``streams`` maps 0, 1 and 2 to "closed" or "full",
        ``limits`` maps AS (bytes beyond those in use), FSIZE and NOFILE to numbers.
        """
        call = {"words": [self.command, *words], "folder": str(folder), "environment": dict(os.environ)}
        names = (Path(os.devnull), folder.parent / "stdout", folder.parent / "stderr")
        files = [os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600) for name in names]
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self.socket))
            socket.send_fds(server, [json.dumps(call | job).encode() + b"\n"], files)
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


@contextlib.contextmanager
def forks_of(command: str) -> Iterator[Forks]:
    """Serve calls of a command."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as root:
        forks = Forks(command, Path(root))
        server = subprocess.Popen(
            [sys.executable, str(HERE / "server.py"), str(forks.socket), command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield forks
        server.communicate()  # which ends at the end of its input
