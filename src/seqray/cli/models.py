"""``seqray models``: list the shipped models, show a card, verify files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from textwrap import fill
from typing import Literal

from seqray.cli.model import ModelOptions
from seqray.cli.options import Outcome, Request, add_options, option
from seqray.core.errors import ConfigError, ModelFileError
from seqray.core.text import counted, headline_metric
from seqray.io.files import sha256
from seqray.modelfile.header import available_models, locate_model, read_card, read_header

_WIDTH = 80


class ModelsRequest(Request):
    """Options of ``seqray models``; without an action it lists the shipped models."""

    json: bool = option("--json", "write JSON")
    full: bool = False
    action: Literal["list", "show", "verify"] = "list"
    models: tuple[str, ...] = ()
    backbone: str | None = None

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", metavar="{list,show,verify}", required=False)
        listing = actions.add_parser("list", help="the shipped models, a line each (default)")
        show = actions.add_parser("show", help="describe a model")
        show.add_argument("models", nargs=1, metavar="MODEL", help="shipped model or model file")
        show.add_argument("--full", action="store_true", help="all facts and figures of its file")
        verify = actions.add_parser("verify", help="check the checksum and the self-test of model files")
        verify.add_argument("models", nargs="*", metavar="MODEL", help="default: all shipped ones")
        add_options(verify, ModelOptions, ["backbone"])
        for action in (listing, show, verify):
            action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="write JSON")
        parser.set_defaults(action="list", models=(), backbone=None, full=False)


def run(request: ModelsRequest) -> Outcome:
    """Run the action."""
    {"list": _list, "show": _show, "verify": _verify}[request.action](request)
    return Outcome(resources=False)


def _list(request: ModelsRequest) -> None:
    rows = list[dict[str, str | int]]()
    for name in available_models():
        path = locate_model(name)
        card = read_header(path).mapping
        rows.append(
            {
                "name": name,
                "window": card["window"],
                "classes": ",".join(card["classes"]),
                "members": card["members"],
                "size": path.stat().st_size,
                "measured": headline_metric(card["metrics"]),
                "summary": card["summary"],
            }
        )
    if request.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            measured = str(row["measured"]).strip("-")
            print(_wrapped(str(row["summary"]), f"{row['name']:24}  ", " " * 26))
            size = f"{counted(int(row['members']), 'network')}, {int(row['size']) / 1e6:.1f} MB"
            print(_wrapped("; ".join(filter(None, (measured, size))), " " * 26, " " * 26))


def _wrapped(text: str, first: str, later: str) -> str:
    """A text within the width of a terminal, behind the beginnings of its first and its later lines."""
    return fill(text, _WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _show(request: ModelsRequest) -> None:
    from seqray.core.card import card_to_mapping, describe_card, list_card

    path = locate_model(request.models[0])
    card, checksum = read_card(path), sha256(path)
    if request.json:
        print(json.dumps(card_to_mapping(card) | {"sha256": checksum}, indent=2, sort_keys=True))
    else:
        lines = list_card(card) if request.full else describe_card(card)
        for line in (*lines, f"sha256: {checksum}"):
            indent = line[: len(line) - len(line.lstrip())]
            print(line if request.full else _wrapped(line.lstrip(), indent, f"{indent}  "))
        if not request.full:
            request.note(
                f"--full prints all figures and settings of {card.name}, --json the same for programs"
            )


def _verify(request: ModelsRequest) -> None:
    from seqray.modelfile.file import load_model

    if request.backbone and not request.models:
        raise ConfigError(
            "'--backbone' is given without a model", remedy="name the model that is built on it"
        )
    names = request.models or available_models()
    if not names:
        raise ModelFileError("this installation ships no model", remedy="name a model file")
    failures, rows = list[ModelFileError](), list[dict[str, str]]()
    for name in names:
        row = {"name": Path(name).name, "status": "ok"}
        try:
            row["sha256"] = load_model(name, request.backbone).sha256
        except ModelFileError as error:
            if Path(name).is_file() and not name.endswith(".safetensors"):
                others = "verify checks models, and sha256sum gives the checksum of any other file"
                error = ModelFileError(error.what, where=error.where, remedy=f"{error.remedy}; {others}")
            reason = ModelFileError(error.what, remedy=error.remedy)  # without the name once more
            row |= {"status": "failed", "reason": str(reason)}
            failures.append(error)
        rows.append(row)
        if not request.json:
            print(*row.values(), sep="\t")
    if request.json:
        print(json.dumps(rows, indent=2))
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ModelFileError(f"{len(failures)} of {len(names)} models failed", remedy="see the lines above")
