"""``seqray pretrain``: sequences or alignments without labels in, weights for ``seqray train --init`` out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.cli.common import SkipLog, check_files, probability
from seqray.cli.train import INTERRUPTED, add_run_arguments, configure
from seqray.core import ALPHABETS
from seqray.io.alignments import read_alignments
from seqray.io.sequences import read_fasta

if TYPE_CHECKING:
    from seqray.core import Alignment, RunConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add(
        "input",
        nargs="+",
        metavar="FILE",
        help="FASTA, or alignments for a model that reads them; plain or compressed; files are joined",
    )
    add("--config", required=True, metavar="YAML", help="settings of the model and its training")
    add("--out", "-o", required=True, metavar="FILE", help="weights, end in .safetensors")
    add(
        "--share", type=probability, default=0.15, metavar="P", help="share of letters to hide (default 0.15)"
    )
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Pre-train, save, and sum up on stderr; returns the exit status."""
    args.members = args.backbone = None
    config = configure(args)
    out = Path(args.out)
    check_files(args.input, [args.out])
    data = read_unlabelled(args, config)
    from seqray.training import check_model_path, is_main_process, pretrain

    check_model_path(out)
    folder = Path(args.work_dir or f"{args.out}.training")
    try:
        result = pretrain(
            config,
            data,
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
        unit = "alignments" if config.model.kind == "alignment" else "windows"
        print("\n".join(summary(result.facts, args.out, unit)), file=sys.stderr)
    return 0


def read_unlabelled(args: argparse.Namespace, config: RunConfig) -> list[str] | list[Alignment]:
    """Letters of the records of all files, or alignments; what holds no letters is told and left out."""
    alphabet = ALPHABETS[config.model.alphabet]
    with SkipLog(None, [], quiet=args.quiet) as skipped:
        if config.model.kind == "alignment":
            return [
                alignment
                for source in args.input
                for alignment in read_alignments(source, alphabet, duplicates="keep", on_skip=skipped)
            ]
        return [
            record.sequence
            for source in args.input
            for record in read_fasta(source, alphabet, duplicates="keep", on_skip=skipped)
        ]


def summary(facts: dict[str, Any], out: str, unit: str) -> list[str]:
    """Say what was learned, beside what the shares of the letters alone give."""
    ours, floor = (
        f"loss {facts[prefix + 'loss']:.4f} nats, accuracy {facts[prefix + 'accuracy']:.3f}"
        for prefix in ("", "floor_")
    )
    return [
        f"learned from {facts['examples']} {unit}, {facts['letters']} letters; best epoch: {facts['epochs']}",
        f"hidden letters of held-out {unit}: {ours} (shares of the letters alone: {floor})",
        f"wrote {out}; begin with it by seqray train --init {out}",
    ]
