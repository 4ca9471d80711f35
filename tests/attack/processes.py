"""Verbs in processes of their own, for signals and limits: forks of one process that has loaded all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_SERVER = """
import json, os, resource, signal, sys, time, traceback
from importlib import import_module
import torch
from seqray.cli import main
from seqray.cli.verbs import VERBS

for module, _ in VERBS.values():
    import_module(module)
for module in ("sklearn.linear_model", "seqray.training.fit", "seqray.training.pretraining"):
    import_module(module)  # which takes seconds, as torch does
for name in ("kinds", "scanning", "inference", "io.sequences", "io.tables", "io.tracks", "datasets.audit"):
    import_module(f"seqray.{name}").__all__
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores
sys.stdout.write("ready\\n")
sys.stdout.flush()


def work(job):
    os.chdir(job["folder"])
    for number, name in enumerate((os.devnull, "../stdout", "../stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    streams = [open(0), open(1, "w", closefd=False), open(2, "w", 1, closefd=False)]  # by lines, as ever
    for number, state in job["streams"].items():
        if state == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), int(number))
        else:  # closed, as the interpreter finds it
            os.close(int(number))
            streams[int(number)] = None
    sys.stdin, sys.stdout, sys.stderr = streams
    for name, limit in job["limits"].items():
        if name == "AS":  # beside what is loaded
            limit += int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    return main(job["words"])


for line in sys.stdin:
    job, started = json.loads(line), time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = work(job)
        except KeyboardInterrupt:  # before the verb began, or after it ended
            status = 130
        except BaseException:
            traceback.print_exc()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
            os._exit(status)
    if job["signal"]:
        time.sleep(job["delay"])
        os.kill(child, job["signal"])  # a child that has ended waits to be waited for
    _, status = os.waitpid(child, 0)
    sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), time.monotonic() - started]) + "\\n")
    sys.stdout.flush()
"""


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
    """Processes that run a verb, each a fork of one that has loaded torch and all verbs."""

    def __enter__(self) -> Self:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def run(self, words: list[str], folder: Path, **how: object) -> Ended:
        """Run a verb in a folder.

        Parameters
        ----------
        words, folder
            After ``seqray``, and the working folder; standard output and error go to files beside it.
        **how
            ``signal`` is sent after ``delay`` seconds. ``streams`` maps 0, 1 and 2 to "closed" or "full".
            ``limits`` maps AS (bytes beyond those in use), FSIZE and NOFILE to numbers.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        job = {"signal": 0, "delay": 0.0, "streams": {}, "limits": {}} | how
        self._server.stdin.write(json.dumps(job | {"words": words, "folder": str(folder)}) + "\n")
        self._server.stdin.flush()
        status, seconds = json.loads(self._server.stdout.readline())
        return Ended(status, seconds, (folder.parent / "stderr").read_text())
