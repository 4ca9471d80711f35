"""``seqray scan``: sites of a model's positive class along sequences of any length, on both strands."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from seqray.cli.common import (
    Origin,
    Progress,
    SkipLog,
    add_common_arguments,
    add_input_arguments,
    add_scan_outputs,
    check_files,
    open_model,
    open_records,
    positive_int,
    probability,
    provenance,
    whole_number,
)
from seqray.cli.scan import shards as scan_shards
from seqray.core import ConfigError

if TYPE_CHECKING:
    from seqray.cli.scan.outputs import Output
    from seqray.core import Region
    from seqray.io import Staging
    from seqray.modelfile import TrainedModel
    from seqray.scanning import Detector, ScanOptions, ScanResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_input_arguments(parser)
    output = parser.add_argument_group("output; all files appear together, or none")
    add_scan_outputs(output)
    output.add_argument(
        "--shard",
        type=scan_shards.parse_shard,
        metavar="I/N",
        help="do the I-th of N shares of the scan and write it to --out FILE.shard, for 'seqray gather'",
    )
    _add_calling_arguments(parser.add_argument_group("calling"))
    _add_sequence_arguments(parser.add_argument_group("sequences"))
    add_common_arguments(parser)


def _add_calling_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--threshold", type=probability, metavar="P", help="lowest probability (default: the model's)"
    )
    group.add_argument(
        "--fdr",
        type=probability,
        metavar="Q",
        help="choose the lowest threshold at which expected false calls are at most this share of all calls",
    )
    group.add_argument(
        "--null-mb",
        type=float,
        default=1.0,
        metavar="MB",
        help="most Mb of shuffled input to scan for the expected false calls; 0: none (default: 1)",
    )
    group.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="of the shuffles (default: 0)"
    )
    group.add_argument(
        "--min-distance",
        type=positive_int,
        default=50,
        metavar="N",
        help="smallest distance between two sites on one strand (default: 50)",
    )


def _add_sequence_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--strand", choices=("both", "plus", "minus"), default="both", help="default: both")
    group.add_argument(
        "--stride",
        type=positive_int,
        default=10,
        metavar="N",
        help="letters between windows; peaks are refined at 1 (default: 10)",
    )
    group.add_argument(
        "--region",
        action="append",
        default=[],
        metavar="NAME[:START[-END]]",
        help="sites within this part only, 1-based and closed; may be repeated",
    )
    group.add_argument("--bed", metavar="FILE", help="sites within the parts of a BED file only")
    group.add_argument("--circular", action="store_true", help="every sequence is a circle")
    group.add_argument(
        "--circular-id",
        action="append",
        default=[],
        metavar="NAME",
        help="this sequence is a circle, as those that GenBank says are; may be repeated",
    )
    group.add_argument(
        "--max-ambiguous",
        type=probability,
        default=0.1,
        metavar="SHARE",
        help="windows with more ambiguous letters aren't scored (default: 0.1)",
    )
    group.add_argument(
        "--skip-soft-masked", action="store_true", help="leave out windows whose site is a lower-case letter"
    )


def run(args: argparse.Namespace) -> int:
    """Read, scan, write."""
    started = time.monotonic()
    from seqray.cli.scan import outputs as scan_outputs
    from seqray.io import Staging
    from seqray.io.tracks import track_paths

    args.command = scan_shards.recorded_command(args.command)
    if args.shard:
        scan_shards.check_arguments(args)
    outputs = [] if args.shard else scan_outputs.plan_outputs(args.out, args.format)
    tracks = [str(path) for track in args.track for path in track_paths(track).values()]
    planned = args.out if args.shard else [output.path for output in outputs]
    check_files(args.input, [*planned, *tracks, args.skipped], beside=(args.model, args.bed))
    settings = _settings(args)
    model = open_model(args)
    if args.shard:
        windows, skips = scan_shards.write_share(args, model, _detector(args, model), settings)
        scan_shards.tell(args, windows, skips, time.monotonic() - started)
        return 0
    origin = Origin(model)
    with Staging() as staging:
        result, skipped = _scan(args, model, settings, outputs, staging, origin)
    if not args.quiet:
        for remark in origin.remarks():
            print(f"seqray: {remark}", file=sys.stderr)
        for caution in scan_outputs.cautions(result, settings):
            print(f"seqray: caution: {caution}", file=sys.stderr)
        seconds = time.monotonic() - started
        print(f"{scan_outputs.summary(result, skipped)}, {seconds:.1f} s", file=sys.stderr)
    return 0


def _settings(args: argparse.Namespace) -> ScanOptions:
    from seqray.scanning import ScanOptions

    if args.duplicates == "keep":
        raise ConfigError("a scan needs ids that tell sequences apart", remedy="use --duplicates rename")
    return ScanOptions(
        stride=args.stride,
        strand=args.strand,
        threshold=args.threshold,
        fdr=args.fdr,
        min_distance=args.min_distance,
        circular=args.circular,
        circular_ids=tuple(args.circular_id),
        max_ambiguous=args.max_ambiguous,
        skip_soft_masked=args.skip_soft_masked,
        regions=_regions(args),
        null_mb=args.null_mb,
        seed=args.seed,
    )


def _regions(args: argparse.Namespace) -> tuple[Region, ...] | None:
    from seqray.core import Region, parse_region
    from seqray.io.tracks import read_bed

    if not args.region and not args.bed:
        return None
    parts = [parse_region(text) for text in args.region]
    for part in read_bed(args.bed) if args.bed else ():
        where = f"{args.bed}: {part.contig}:{part.start + 1}-{part.end}"
        parts.append(Region(part.contig, part.start, part.end, "", where))
    return tuple(parts)


def _detector(args: argparse.Namespace, model: TrainedModel) -> Detector:
    from seqray.scanning import as_detector

    return as_detector(model, batch_size=args.batch_size, precision=args.precision)


def _scan(
    args: argparse.Namespace,
    model: TrainedModel,
    settings: ScanOptions,
    outputs: list[Output],
    staging: Staging,
    origin: Origin,
) -> tuple[ScanResult, int]:
    """Scan into the staging area; returns the result and the number of records skipped."""
    from seqray.cli.scan import outputs as scan_outputs
    from seqray.scanning import Listeners, scan_sequences

    detector = _detector(args, model)
    facts = scan_outputs.settings_facts(detector, settings)
    lines = provenance(args, model, facts)
    call_paths = [staging.path(output.path) for output in outputs]  # what can't be written shows itself now
    skip_path = args.skipped and staging.path(args.skipped)
    with (
        SkipLog(skip_path, lines, quiet=args.quiet) as skipped,
        Progress("windows", quiet=args.quiet) as progress,
        scan_outputs.Tracks(args.track, staging, lines, model.card.positive) as tracks,
    ):
        listeners = Listeners(
            on_skip=None if args.strict else skipped,
            on_contig=tracks.begin if args.track else None,
            on_profile=tracks.add if args.track else None,
            on_windows=progress.show,
        )
        records = open_records(args, model.alphabet, skipped, soft_masks=settings.skip_soft_masked)
        result = scan_sequences(detector, origin.watch(records), settings, listeners)
    lines = provenance(args, model, facts | scan_outputs.result_facts(result, settings))
    for path, output in zip(call_paths, outputs, strict=True):
        scan_outputs.write_calls(path, output.format, result.calls, lines)
    return result, skipped.count
