"""Signals that wait for the end of a block."""

import signal
import threading

import pytest

from seqray.core.interrupt import signals_held


@pytest.fixture(autouse=True)
def _interrupts_are_heard():
    """A program that runs in the background may ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_acts_after_the_block():
    done = []

    def work():
        with signals_held():
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                done.append(1)
        done.append("never")

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1, 1]
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_held():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_hear_no_signals_anyway():
    done = []

    def work():
        with signals_held():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]
