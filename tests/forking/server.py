"""Load a command once, and fork for each call.

python server.py SOCKET COMMAND

A client sends a line of JSON with the words, the folder and the environment, and its three streams. The
answers are the process id, and at the end the exit status and the seconds. The server ends with its input.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NoReturn

LIBRARIES = {
    "seqray": ("torch", "jinja2", "scipy.stats", "sklearn.linear_model"),
    "snakemake": ("snakemake.cli", "snakemake.linting.rules", "snakemake.report.html_reporter", "jsonschema"),
}
PROGRAMS = {"seqray": "seqray.cli.main", "snakemake": "snakemake.cli"}
STREAMS = ("stdin", "stdout", "stderr")


@cache
def load(command: str, training: bool) -> None:
    """Load what calls need; Lightning, which takes longer than all else, at the first that trains."""
    for name in LIBRARIES[command]:
        import_module(name)
    if command == "seqray":
        left_out = ("seqray.__main__", "seqray.api", *(() if training else ("seqray.training",)))
        for module in walk_packages(import_module("seqray").__path__, "seqray."):
            if not module.name.startswith(left_out):
                import_module(module.name)


def take_place(job: dict[str, Any], streams: list[int]) -> None:
    """Take over folder, environment, streams and limits."""
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, closefd=False, errors="backslashreplace")  # by lines, as ever
    for number, state in job.get("streams", {}).items():
        if state == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), int(number))
        else:  # closed, as the interpreter finds it
            os.close(int(number))
            setattr(sys, STREAMS[int(number)], None)
    for name, limit in job.get("limits", {}).items():
        if name == "AS":  # beside what is loaded
            limit += int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))


def run(command: str, job: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run the command in this process, and end it as the interpreter would."""
    status = 1
    try:
        take_place(job, streams)
        sys.argv = job["words"]
        status = import_module(PROGRAMS[command]).main() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:  # before the command began, or after it ended
        status = 130
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            threading._shutdown()
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            status = 120
        finally:
            os._exit(status)


def attend(command: str, client: socket.socket, job: dict[str, Any], streams: list[int]) -> NoReturn:
    """Fork the command, and tell the client, unless it was killed, how it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    started = time.monotonic()
    if not (pid := os.fork()):
        client.close()
        run(command, job, streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):
        client.sendall(b"%d\n" % pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        client.sendall(json.dumps([status, time.monotonic() - started]).encode() + b"\n")
    os._exit(0)


def serve(path: str, command: str) -> None:
    """Fork for each client, until the input ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.write(1, b"ready\n")
    while 0 not in select.select([0, listener], [], [])[0]:
        client, _ = listener.accept()
        data, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
        while not data.endswith(b"\n") and (more := client.recv(1 << 16)):
            data += more
        job = json.loads(data)
        load(command, job["words"][1:2] in (["train"], ["pretrain"]))
        if not os.fork():
            listener.close()
            attend(command, client, job, streams)
        for handle in (*streams, client.detach()):
            os.close(handle)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    load(sys.argv[2], training=False)
    serve(*sys.argv[1:])
