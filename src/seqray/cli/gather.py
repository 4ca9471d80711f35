"""``seqray gather``: merge the shards of one scan into the outputs of the whole scan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from seqray.cli.inputs import SKIPPED_HELP, SkipLog, check_files
from seqray.cli.options import Outcome, Request, divide_words, option
from seqray.cli.scan import OUTPUT_OPTIONS, PYTORCH, CallOutputs
from seqray.core.errors import ConfigError, InputError


class GatherRequest(Request):
    """Options of ``seqray gather``."""

    shards: tuple[str, ...] = option(
        "SHARD+", "every file that 'seqray scan --shard I/N' wrote, in any order"
    )
    outputs: CallOutputs
    skipped: str | None = option("--skipped FILE", SKIPPED_HELP)


def run(request: GatherRequest) -> Outcome:
    """Read the shards, merge them, write."""
    from seqray.core.results import SkippedRecord
    from seqray.core.version import __version__
    from seqray.scanning.shards import ShardFile, check_shards, gather_shards
    from seqray.scanning.words import result_facts, summary

    files = request.outputs.files(request.skipped)
    if files.has_letters:
        what = "GenBank and FASTA hold the sequences, which shards lack"
        raise ConfigError(what, remedy="write another format")
    for shard in request.shards:
        check_files([shard], files.paths())
    with ExitStack() as stack:
        shards = [stack.enter_context(ShardFile(shard)) for shard in request.shards]
        check_shards(shards)
        header = shards[0].header
        if header["version"] != __version__:
            raise InputError(
                f"was written by seqray {header['version']}, but this is {__version__}",
                where=shards[0].path,
                remedy="gather with the version that scanned",
            )
        lines = _provenance(request, header, {})
        with files.open(lines, header["track name"]):
            with SkipLog(files.staged_skipped, lines, quiet=True) as skipped:
                for name, reason in header["skipped"]:
                    skipped(SkippedRecord(name, reason))
                files.check_genes(known=bool(header["genes"]))
                result = gather_shards(shards, files.callbacks())
            lines = _provenance(request, header, result_facts(result))
            files.write(result, lines, [header["model"][0], *header["card"]])
    request.note(*result.findings)
    return Outcome(records=len(result.scanned), last=summary(result, len(header["skipped"])))


def _provenance(request: GatherRequest, header: Mapping[str, Any], extra: Mapping[str, str]) -> list[str]:
    """The header that the whole scan would have written, with the outputs of this command."""
    from seqray.io.tables import provenance_lines

    engine = {} if header["engine"] == PYTORCH else {"engine": header["engine"]}
    command = [*header["command"], *divide_words(request.command, OUTPUT_OPTIONS)[0]]
    name, checksum = header["model"]
    return provenance_lines(
        command, name, checksum, header["alphabet"], {**header["facts"], **extra, **engine}
    )
