"""``seqray gather``: the shards of one scan make the bytes that the whole scan would have written."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from seqray.cli.common import SkipLog, add_scan_outputs, check_files
from seqray.core import InputError

if TYPE_CHECKING:
    from seqray.cli.scan import Output
    from seqray.io import Staging
    from seqray.scanning import ScanOptions, ScanResult, ShardFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "shards",
        nargs="+",
        metavar="SHARD",
        help="every file that 'seqray scan --shard I/N' wrote, in any order",
    )
    add_scan_outputs(parser.add_argument_group("output; all files appear together, or none"))
    parser.add_argument("--skipped", metavar="FILE", help="write skipped records and reasons to a TSV")
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="write nothing but errors to standard error"
    )


def run(args: argparse.Namespace) -> int:
    """Read the shards, put them together, write."""
    started = time.monotonic()
    from seqray.cli.scan import cautions, plan_outputs, summary
    from seqray.io import Staging
    from seqray.io.tracks import track_paths
    from seqray.scanning import ShardFile, check_shards

    outputs = plan_outputs(args.out, args.format)
    tracks = [str(path) for track in args.track for path in track_paths(track).values()]
    for shard in args.shards:
        check_files([shard], [*(output.path for output in outputs), *tracks, args.skipped])
    with ExitStack() as stack, Staging() as staging:
        files = [stack.enter_context(ShardFile(shard)) for shard in args.shards]
        check_shards(files)
        settings = _settings(files[0])
        result = _gather(args, files, settings, outputs, staging)
    args.records = result.contigs
    if not args.quiet:
        for caution in cautions(result, settings):
            print(f"seqray: caution: {caution}", file=sys.stderr)
        seconds = time.monotonic() - started
        count = len(files[0].header["skipped"])
        print(f"{summary(result, count)}, {seconds:.1f} s", file=sys.stderr)
    return 0


def _settings(file: ShardFile) -> ScanOptions:
    from seqray.scanning import ScanOptions

    return ScanOptions(**file.header["options"])


def _lines(args: argparse.Namespace, header: dict[str, Any], extra: dict[str, str]) -> list[str]:
    """The header that the whole scan would have written, with the outputs of this command."""
    from seqray.cli.scan import divide_words
    from seqray.io.tables import provenance_lines

    command = [*header["command"], *divide_words(args.command)[1]]
    name, checksum = header["model"]
    return provenance_lines(command, name, checksum, header["alphabet"], header["facts"] | extra)


def _gather(
    args: argparse.Namespace,
    files: Sequence[ShardFile],
    settings: ScanOptions,
    outputs: Sequence[Output],
    staging: Staging,
) -> ScanResult:
    from seqray.cli.scan import Tracks, result_facts, write_calls
    from seqray.scanning import Listeners, gather, skipped_of

    header = files[0].header
    _check_version(files[0])
    lines = _lines(args, header, {})
    call_paths = [staging.path(output.path) for output in outputs]
    skip_path = args.skipped and staging.path(args.skipped)
    with (
        SkipLog(skip_path, lines, quiet=True) as skipped,
        Tracks(args.track, staging, lines, header["track name"]) as tracks,
    ):
        for record in skipped_of(files[0]):
            skipped(record)
        listeners = Listeners(
            on_contig=tracks.begin if args.track else None,
            on_profile=tracks.add if args.track else None,
        )
        result = gather(files, settings, listeners)
    lines = _lines(args, header, result_facts(result, settings))
    for path, output in zip(call_paths, outputs, strict=True):
        write_calls(path, output.format, result.calls, lines)
    return result


def _check_version(file: ShardFile) -> None:
    from seqray.core import __version__

    if file.header["version"] != __version__:
        raise InputError(
            f"was written by seqray {file.header['version']}, and this is {__version__}",
            where=file.path,
            remedy="gather with the version that scanned",
        )
