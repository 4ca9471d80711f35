"""Stand for a command: a server runs it in a fork, with the streams, the folder and the environment of this.

python -IS client.py SOCKET COMMAND [WORD ...]
"""

import contextlib
import json
import os
import signal
import socket
import sys

PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def pass_on(number: int, frame: object) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        os.kill(pid, number)


server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)
job = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
socket.send_fds(server, [json.dumps(job).encode() + b"\n"], [0, 1, 2])
os.closerange(0, 3)  # a pipe ends when the fork closes it
replies = server.makefile()
pid = json.loads(replies.readline())
for number in PASSED:
    signal.signal(number, pass_on)
signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED)
status, _ = json.loads(replies.readline())
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
