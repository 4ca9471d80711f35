"""``seqray gather``: merge the shards of one scan into the outputs of the whole scan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from seqray.cli.inputs import SKIPPED_HELP, SkipLog, check_files
from seqray.cli.options import Outcome, Request, name_options, option
from seqray.cli.scan_options import CallOutputs
from seqray.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from seqray.cli.scan_outputs import CallFiles
    from seqray.scanning.options import ScanOptions
    from seqray.scanning.results import ScanResult
    from seqray.scanning.shards import ShardFile


class GatherRequest(Request):
    """Options of ``seqray gather``."""

    shards: tuple[str, ...] = option(
        "SHARD+", "every file that 'seqray scan --shard I/N' wrote, in any order"
    )
    outputs: CallOutputs
    skipped: str | None = option("--skipped FILE", SKIPPED_HELP)


def run(request: GatherRequest) -> Outcome:
    """Read the shards, merge them, write."""
    started = time.monotonic()
    from seqray.cli.scan_facts import summary
    from seqray.cli.scan_outputs import CallFiles
    from seqray.scanning.options import ScanOptions
    from seqray.scanning.shards import ShardFile, check_shards

    files = CallFiles.plan(request.outputs, request.skipped)
    if files.has_genbank:
        raise ConfigError("GenBank holds the sequences, which shards lack", remedy="write another format")
    for shard in request.shards:
        check_files([shard], files.paths())
    with ExitStack() as stack:
        shards = [stack.enter_context(ShardFile(shard)) for shard in request.shards]
        check_shards(shards)
        _check_version(shards[0])
        options = ScanOptions(**shards[0].header["options"])
        result, findings = _gather(request, shards, options, files)
    request.note(*findings)
    skipped = len(shards[0].header["skipped"])
    request.say(f"{summary(result, skipped)}, {time.monotonic() - started:.1f} s")
    return Outcome(records=result.contigs)


def _gather(
    request: GatherRequest, shards: Sequence[ShardFile], options: ScanOptions, files: CallFiles
) -> tuple[ScanResult, list[str]]:
    """Write all files; the result, and what to tell the user of it."""
    from seqray.calibration.expected_precision import ExpectedPrecision
    from seqray.cli.scan_facts import result_facts
    from seqray.io.files import Staging
    from seqray.scanning.describe import call_cautions, describe_result
    from seqray.scanning.shards import gather_shards, reading_shard, skipped_records

    lines = _provenance(request, shards[0], {})
    name = shards[0].header["track name"]
    with Staging() as staging, files.stage(staging, lines, name) as staged:
        with SkipLog(staged.skipped, lines, quiet=True) as skipped:
            for record in skipped_records(shards[0]):
                skipped(record)
            result = gather_shards(shards, options, staged.callbacks())
        header = shards[0].header
        with reading_shard(shards[0].path):
            expected = ExpectedPrecision.from_mapping(header["expected"], foreign=header["foreign"])
            result = describe_result(result, expected, header["species"])
            found = call_cautions(result, options, expected)
        findings = [*header["findings"], *map(name_options, found)]
        facts = _provenance(request, shards[0], result_facts(result, options))
        staged.write(result, facts)
        if staged.page is not None:
            from seqray.report.pages.sequences import ModelText

            [name, _], [about, *lines_of_card] = header["model"], header["card"]
            staged.page.write(result, facts, findings, ModelText(name, about, lines_of_card))
    return result, findings


def _provenance(request: GatherRequest, shard: ShardFile, extra: dict[str, str]) -> list[str]:
    """The header that the whole scan would have written, with the outputs of this command."""
    from seqray.cli.scan_options import divide_words
    from seqray.cli.scan_shards import PYTORCH
    from seqray.io.tables import provenance_lines

    header = shard.header
    engine = {} if header["engine"] == PYTORCH else {"engine": header["engine"]}
    command = [*header["command"], *divide_words(request.command)[1]]
    name, checksum = header["model"]
    return provenance_lines(command, name, checksum, header["alphabet"], header["facts"] | extra | engine)


def _check_version(file: ShardFile) -> None:
    from seqray.core.version import __version__

    if file.header["version"] != __version__:
        raise InputError(
            f"was written by seqray {file.header['version']}, but this is {__version__}",
            where=file.path,
            remedy="gather with the version that scanned",
        )
