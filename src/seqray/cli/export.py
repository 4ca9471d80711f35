"""``seqray export``: a model as a file that other programs run."""

from __future__ import annotations

import argparse
import sys

from seqray.core import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a shipped model (seqray models) or a file")
    add("--format", choices=("onnx",), default="onnx", help="default: onnx")
    add("--out", "-o", required=True, metavar="FILE", help="ends in .onnx")
    add("--quiet", "-q", action="store_true", help="write nothing but errors to standard error")


def run(args: argparse.Namespace) -> int:
    """Load, check against torch, write."""
    if args.out == "-":
        raise InputError("an exported model is a file", where="--out", remedy="name one that ends in .onnx")
    from seqray.modelfile import load_model, locate_model, read_card

    card = read_card(locate_model(args.model))  # a misspelt name is told before torch is loaded
    from seqray.inference.onnx import export_onnx, require_graph

    require_graph(card)
    model = load_model(args.model)
    difference = export_onnx(model, args.out)
    if not args.quiet:
        members = f"{model.card.members} member{'s' if model.card.members > 1 else ''}"
        print(
            f"wrote {args.out}: {members} in one graph, logits within {difference:.1g} of torch's",
            file=sys.stderr,
        )
    return 0
