"""``seqray scan --shard I/N``: one share of a scan into a file; and the command line that a scan records.

The header of a result names the command. So that gathered shards give the bytes of the whole scan, a scan
names its outputs last in there, in the order given, and leaves out what only says how much is told.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seqray.cli.common import Progress, SkipLog, open_records
from seqray.core import ConfigError

if TYPE_CHECKING:
    from seqray.core.results import SkippedRecord
    from seqray.modelfile import TrainedModel
    from seqray.scanning import Detector, ScanOptions

OUTPUT_OPTIONS = ("--out", "-o", "--track", "--format", "--skipped")
_SHARD_OPTIONS = ("--shard",)
_SHORT = re.compile("-[^-]")
_TELLING = ("--quiet", "-q", "--verbose", "--log-json", "--debug")
GATHERED = ("strand", "threshold", "fdr", "min_distance")
"""Options of a scan that putting shards together needs."""


def parse_shard(text: str) -> tuple[int, int]:
    """Type of an argument: ``I/N``, from ``1/N`` to ``N/N``."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not I/N with I from 1 to N")
    return int(match[1]), int(match[2])


def divide_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into what decides the scan, and the options that name its outputs."""
    settings: list[str] = []
    outputs: list[str] = []
    rest = iter(words)
    for given in rest:
        word = re.sub("^-q+(?=[^q])", "-", given)  # -qo FILE is -q -o FILE
        name = word[:2] if _SHORT.match(word) else word.partition("=")[0]
        valued = name in (*OUTPUT_OPTIONS, *_SHARD_OPTIONS)
        parts = [word, next(rest, "")] if valued and word == name else [word]
        if name in OUTPUT_OPTIONS:
            outputs += parts
        elif name not in (*_SHARD_OPTIONS, *_TELLING):
            settings += parts
    return settings, outputs


def recorded_command(words: Sequence[str]) -> tuple[str, ...]:
    """The command line as the headers of results name it."""
    settings, outputs = divide_words(words)
    return (*settings, *outputs)


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse what a shard has no place for.

    Raises
    ------
    ConfigError
        Without one ``--out``, and for outputs that are written when the shards are gathered.
    """
    from seqray.scanning import SHARD_SUFFIX

    later = [name for name in ("track", "format", "skipped") if getattr(args, name)]
    if later:
        raise ConfigError(
            f"--shard and --{later[0]} can't both be given", remedy=f"give --{later[0]} to 'seqray gather'"
        )
    if len(args.out) != 1 or not (args.out[0] == "-" or args.out[0].endswith(SHARD_SUFFIX)):
        raise ConfigError("--shard needs one output", remedy=f"give --out FILE{SHARD_SUFFIX}")


def write_share(
    args: argparse.Namespace, model: TrainedModel, detector: Detector, settings: ScanOptions
) -> tuple[int, int]:
    """Scan one share and write its shard; returns the windows scored and the records skipped."""
    from seqray.cli.scan import outputs as scan_outputs
    from seqray.io import Staging
    from seqray.scanning import Listeners, Share, scan_share, write_shard

    kept: list[tuple[str, str]] = []
    with Staging() as staging:
        target = staging.path(args.out[0])
        with (
            SkipLog(None, (), quiet=args.quiet) as skipped,
            Progress("windows", quiet=args.quiet) as progress,
        ):

            def on_skip(record: SkippedRecord) -> None:
                kept.append((record.id, record.reason))
                skipped(record)

            records = open_records(args, model.alphabet, on_skip, soft_masks=settings.skip_soft_masked)
            listeners = Listeners(on_skip=None if args.strict else on_skip, on_windows=progress.show)
            header, arrays = scan_share(detector, records, settings, listeners, Share(*args.shard))
        facts = scan_outputs.settings_facts(detector, settings)
        write_shard(target, header | {"skipped": kept} | _provenance(args, model, settings, facts), arrays)
    return header["counted"]["windows"], len(kept)


def _provenance(
    args: argparse.Namespace, model: TrainedModel, settings: ScanOptions, facts: dict[str, str]
) -> dict[str, Any]:
    """What `seqray gather` writes above its tables."""
    from seqray.core import __version__
    from seqray.io.tables import describe_alphabet

    command, _ = divide_words(args.command)
    return {
        "version": __version__,
        "command": command,
        "model": [model.card.name, model.sha256],
        "alphabet": describe_alphabet(model.alphabet),
        "facts": facts,
        "options": {name: getattr(settings, name) for name in GATHERED},
        "track name": model.card.positive,
    }


def tell(args: argparse.Namespace, windows: int, skipped: int, seconds: float) -> None:
    """Sum up on standard error."""
    if not args.quiet:
        number, total = args.shard
        skips = f", {skipped} records skipped" if skipped else ""
        print(f"shard {number}/{total}: {windows} windows{skips}, {seconds:.1f} s", file=sys.stderr)
