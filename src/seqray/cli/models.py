"""``seqray models``: list the shipped models, show a card, verify files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from seqray.cli.common import add_backbone_argument
from seqray.core import ConfigError, ModelFileError, card_to_mapping, describe, headline
from seqray.io import sha256
from seqray.modelfile import available_models, load_model, locate_model, read_card

TELLS_RESOURCES = False
COLUMNS = ("name", "window", "classes", "members", "size", "measured", "summary")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments; without an action the shipped models are listed."""
    parser.add_argument("--json", action="store_true", help="write JSON")
    actions = parser.add_subparsers(dest="action", metavar="{list,show,verify}", required=False)
    listing = actions.add_parser("list", help="the shipped models, a line each (default)")
    show = actions.add_parser("show", help="print the card of a model")
    show.add_argument("models", nargs=1, metavar="MODEL", help="shipped model or model file")
    verify = actions.add_parser("verify", help="check the checksum and the self-test of models")
    verify.add_argument("models", nargs="*", metavar="MODEL", help="all shipped ones by default")
    add_backbone_argument(verify)
    for action in (listing, show):
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="write JSON")
    for action in (listing, show, verify):
        action.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.set_defaults(action="list")


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say; returns the exit status."""
    if args.action == "verify" and args.json:
        raise ConfigError("'verify' has no JSON output", remedy="read its lines: model, verdict, sha256")
    return {"list": _list, "show": _show, "verify": _verify}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    rows = [_row(name) for name in available_models()]
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print("\n".join(_table([COLUMNS, *map(_cells, rows)])))
    return 0


def _row(name: str) -> dict[str, str | int]:
    path = locate_model(name)
    card = read_card(path)
    return {
        "name": name,
        "window": card.window,
        "classes": ",".join(card.classes),
        "members": card.members,
        "size": path.stat().st_size,
        "measured": headline(card),
        "summary": card.summary,
    }


def _cells(row: dict[str, str | int]) -> list[str]:
    megabytes = f"{int(row['size']) / 1e6:.1f} MB"
    return [megabytes if column == "size" else str(row[column]) for column in COLUMNS]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns with two spaces between; nothing trails."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _show(args: argparse.Namespace) -> int:
    if len(args.models) != 1:
        shipped = ", ".join(available_models()) or "none"
        raise ConfigError("'show' takes one model", remedy=f"shipped are {shipped}")
    path = locate_model(args.models[0])
    card, checksum = read_card(path), sha256(path)
    if args.json:
        print(json.dumps(card_to_mapping(card) | {"sha256": checksum}, indent=2, sort_keys=True))
    else:
        print("\n".join([*describe(card), f"sha256: {checksum}"]))
    return 0


def _verify(args: argparse.Namespace) -> int:
    if args.backbone and not args.models:
        raise ConfigError("'--backbone' is given, and no model", remedy="name the model that stands on it")
    names = args.models or available_models()
    if not names:
        raise ModelFileError("this installation ships no model", remedy="name a model file")
    failures = []
    for name in names:
        try:
            print(f"{Path(name).name}\tok\t{load_model(name, args.backbone).sha256}")
        except ModelFileError as error:
            print(f"{Path(name).name}\tfailed\t{error}")
            failures.append(error)
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ModelFileError(f"{len(failures)} of {len(names)} models failed", remedy="see the lines above")
    return 0
