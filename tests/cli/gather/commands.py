"""Words of the commands, and a run of them."""

from __future__ import annotations

from seqray.cli.main import main


def run(*words):
    assert main([str(word) for word in words]) == 0


def scan_words(genome, model, *more):
    return ["scan", genome, "--model", model, "--threads", "1", *more]
