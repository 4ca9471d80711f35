"""``seqray pretrain``: sequences without labels in, weights for ``seqray train --init`` out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.alphabet import ALPHABETS
from seqray.cli.options import SkipLog, check_files, positive_int, probability, whole_number
from seqray.cli.train import INTERRUPTED, configure
from seqray.io.fasta import read_fasta

if TYPE_CHECKING:
    from seqray.config import RunConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add("input", nargs="+", metavar="FASTA", help="sequences, plain or compressed; several files are joined")
    add("--config", required=True, metavar="YAML", help="settings of the model and its training")
    add("--out", "-o", required=True, metavar="FILE", help="weights, end in .safetensors")
    add(
        "--share", type=probability, default=0.15, metavar="P", help="share of letters to hide (default 0.15)"
    )
    add("--work-dir", metavar="DIR", help="checkpoints and logs (default: OUT.training)")
    add("--no-resume", action="store_true", help="start afresh where DIR holds an earlier run")
    add(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="setting that overrides YAML's: a.b=1"
    )
    add("--seed", type=whole_number, metavar="N", help="seed of the run")
    add("--threads", type=positive_int, metavar="N", help="processor threads (default: all)")
    add(
        "--device",
        default="auto",
        metavar="DEVICE",
        help="auto (YAML's, else a GPU if there is one), cpu, cuda or cuda:N",
    )
    add("--quiet", "-q", action="store_true", help="no progress bar and no summary")


def run(args: argparse.Namespace) -> int:
    """Pre-train, save, and sum up on stderr; returns the exit status."""
    args.members = args.backbone = None
    config = configure(args)
    out = Path(args.out)
    for source in args.input:
        check_files(source, [args.out])
    sequences = read_sequences(args, config)
    from seqray.training.fit import check_output
    from seqray.training.pretrain import pretrain
    from seqray.training.workdir import is_main_process

    check_output(out)
    folder = Path(args.work_dir or f"{args.out}.training")
    try:
        result = pretrain(
            config,
            sequences,
            out,
            work_dir=folder,
            share=args.share,
            resume=not args.no_resume,
            progress=sys.stderr.isatty() and not args.quiet,
            threads=args.threads,
        )
    except KeyboardInterrupt:
        print(f"seqray: interrupted; the same command resumes from {folder}", file=sys.stderr)
        return INTERRUPTED
    if not args.quiet and is_main_process():
        print("\n".join(summary(result.facts, args.out)), file=sys.stderr)
    return 0


def read_sequences(args: argparse.Namespace, config: RunConfig) -> list[str]:
    """Letters of the records of all files; records without letters are told and left out."""
    alphabet = ALPHABETS[config.model.alphabet]
    with SkipLog(None, [], quiet=args.quiet) as skipped:
        return [
            record.sequence
            for source in args.input
            for record in read_fasta(source, alphabet, duplicates="keep", on_skip=skipped)
        ]


def summary(facts: dict[str, Any], out: str) -> list[str]:
    """Say what was learned, beside what the shares of the letters alone give."""
    ours, floor = (
        f"loss {facts[prefix + 'loss']:.4f} nats, accuracy {facts[prefix + 'accuracy']:.3f}"
        for prefix in ("", "floor_")
    )
    return [
        f"learned from {facts['windows']} windows, {facts['letters']} letters; best epoch: {facts['epochs']}",
        f"hidden letters of held-out windows: {ours} (shares of the letters alone: {floor})",
        f"wrote {out}; begin with it by seqray train --init {out}",
    ]
