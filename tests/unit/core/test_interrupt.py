"""Signals that wait for the end of a block; each test has its own process, for runners of tests hear them."""

import subprocess
import sys
import threading

from seqray.core.errors import signals_held

HELD = """
import signal
from seqray.core.errors import signals_held

signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
before = [signal.getsignal(name) for name in names]
try:
    with signals_held():
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            print("inside")
    print("never")
except KeyboardInterrupt:
    print("after", before == [signal.getsignal(name) for name in names])
"""
IGNORED = """
import signal
from seqray.core.errors import signals_held

signal.signal(signal.SIGHUP, signal.SIG_IGN)
with signals_held():
    signal.raise_signal(signal.SIGHUP)
print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)
"""
NOT_HEARD = """
import signal
from seqray.core.errors import raise_if_terminated, terminable

signal.signal(signal.SIGINT, signal.SIG_IGN)
with terminable():
    signal.raise_signal(signal.SIGINT)
    raise_if_terminated()
print("on")
"""
LOADING = """
import time
from seqray.core.errors import Terminated, terminable

try:
    with terminable():
        import ends_me
        print("loaded")
        time.sleep(60)
except Terminated:
    print("terminated")
"""


def printed(program, folder=None):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_signal_acts_after_the_block():
    assert printed(HELD) == ["inside", "inside", "after True"]


def test_a_signal_that_is_ignored_stays_so():
    assert printed(IGNORED) == ["True"]


def test_ctrl_c_stays_ignored_in_a_program_in_the_background():
    assert printed(NOT_HEARD) == ["on"]


def test_a_signal_waits_for_the_end_of_an_import(tmp_path):
    """Raised within, it may leave the lock of imports taken, or abort the program."""
    body = "import signal\nsignal.raise_signal(signal.SIGTERM)\nprint('goes on')\n"
    (tmp_path / "ends_me.py").write_text(body)
    assert printed(LOADING, tmp_path) == ["goes on", "loaded", "terminated"]


def test_other_threads_hear_no_signals_anyway():
    done = []

    def work():
        with signals_held():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]
