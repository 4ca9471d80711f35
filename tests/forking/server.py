"""Load a command once, and fork for each call.

python server.py SOCKET COMMAND

A client sends a line of JSON with the words, the folder and the environment, and its three streams. The
answers are the process id, and at the end the exit status and the seconds. The server ends with its input.
"""

import contextlib
import json
import os
import resource
import selectors
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
from typing import Any

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


def run(command: str, job: dict[str, Any], streams: list[int], inherited: list[Any]) -> None:
    """Run the command in this process, and end it as the interpreter would."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for source in inherited:
            source.close()
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


def receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A job, and its streams."""
    data, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
    while not data.endswith(b"\n") and (more := client.recv(1 << 16)):
        data += more
    return json.loads(data), streams


def tell(client: socket.socket, answer: object) -> None:
    """Answer a client; one that was killed waits for nothing."""
    with contextlib.suppress(OSError):
        client.sendall(json.dumps(answer).encode() + b"\n")


def serve(path: str, command: str) -> None:
    """Fork for each client, and tell it how the fork ended."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    wake, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    os.write(1, b"ready\n")
    running: dict[int, tuple[socket.socket, float]] = {}
    selector = selectors.DefaultSelector()
    for source in (0, listener, wake):
        selector.register(source, selectors.EVENT_READ)
    while 0 not in (ready := [key.fileobj for key, _ in selector.select()]):
        if wake in ready:
            wake.recv(1 << 12)
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    client, started = running.pop(ended[0])
                    tell(client, [os.waitstatus_to_exitcode(ended[1]), time.monotonic() - started])
                    client.close()
        if listener in ready:
            client, _ = listener.accept()
            job, streams = receive(client)
            load(command, job["words"][1:2] in (["train"], ["pretrain"]))
            started = time.monotonic()
            if not (pid := os.fork()):
                others = [one for one, _ in running.values()]
                run(command, job, streams, [listener, wake, waker, selector, client, *others])
            for stream in streams:
                os.close(stream)
            running[pid] = client, started
            tell(client, pid)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    load(sys.argv[2], training=False)
    serve(*sys.argv[1:])
