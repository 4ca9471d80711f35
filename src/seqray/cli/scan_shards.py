"""``seqray scan --shard I/N``: one share of a scan into a file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from seqray.cli.inputs import SkipLog, letters_in, open_records, refuse_skipped
from seqray.cli.messages import Progress
from seqray.cli.model import context_fact, origin_of
from seqray.cli.options import name_options
from seqray.cli.scan_facts import settings_facts
from seqray.cli.scan_options import divide_words
from seqray.core.card import describe_card
from seqray.core.errors import ConfigError
from seqray.core.version import __version__
from seqray.io.files import Staging
from seqray.io.sequences import read_sequences
from seqray.io.tables import describe_alphabet
from seqray.scanning.describe import model_limits
from seqray.scanning.options import ScanCallbacks, ShardNumber
from seqray.scanning.shards import SHARD_SUFFIX, scan_shard, write_shard

if TYPE_CHECKING:
    from seqray.cli.scan_options import ScanRequest
    from seqray.core.results import SkippedRecord
    from seqray.modelfile.model import TrainedModel
    from seqray.scanning.detectors import Detector
    from seqray.scanning.options import ScanOptions

PYTORCH = "PyTorch"
"""The engine of a shard whose outputs name none."""
GATHERED = ("strand", "threshold", "fdr", "precision", "species", "per_kb")
"""Options of a scan that are needed when shards are gathered."""


def check_outputs(request: ScanRequest) -> list[str]:
    """The file of the shard.

    ConfigError is raised without one ``--out``, and for outputs that are written when the shards are
    gathered.
    """
    outputs = request.outputs
    later = {
        "html": outputs.html,
        "track": outputs.track,
        "format": outputs.format,
        "skipped": request.records.skipped,
    }
    for name in filter(later.get, later):
        raise ConfigError(
            f"--shard and --{name} can't both be given", remedy=f"give --{name} to 'seqray gather'"
        )
    if len(outputs.out) != 1 or not (outputs.out[0] == "-" or outputs.out[0].endswith(SHARD_SUFFIX)):
        raise ConfigError("--shard needs one output", remedy=f"give --out FILE{SHARD_SUFFIX}")
    return [outputs.out[0]]


def write_share(
    request: ScanRequest, model: TrainedModel, detector: Detector, options: ScanOptions
) -> tuple[int, list[str]]:
    """Scan one share, write its shard, and return the number of records and lines for the user."""
    kept: list[tuple[str, str]] = []
    origin = origin_of(request.model, model)
    number, total = request.outputs.shard or (1, 1)
    with Staging() as staging:
        target = staging.path(request.outputs.out[0])
        with (
            SkipLog(None, (), quiet=request.quiet) as skipped,
            Progress("scan", "letters", letters_in(request.input), quiet=request.quiet) as progress,
        ):

            def on_skip(record: SkippedRecord) -> None:
                kept.append((record.id, record.reason))
                skipped(record)

            read = partial(read_sequences, soft_masks=options.skip_soft_masked)
            records = open_records(read, [request.input], request.records, model.alphabet, on_skip)
            callbacks = ScanCallbacks(
                on_skip=partial(refuse_skipped, request.input) if request.records.strict else on_skip,
                on_progress=progress.update,
            )
            header, arrays = scan_shard(
                detector, origin.watch(records), options, callbacks, ShardNumber(number, total)
            )
            if not request.records.allow_empty:
                skipped.check_some_left(header["counted"]["contigs"], request.input)
        findings = [*origin.findings(options.species), *model_limits(model.card, options)]
        facts = {
            "version": __version__,
            "command": divide_words(request.command)[0],
            "model": [model.card.name, model.sha256],
            "engine": model.engine or PYTORCH,
            "card": [model.card.summary, *describe_card(model.card)],
            "findings": [name_options(line) for line in findings],
            "alphabet": describe_alphabet(model.alphabet),
            "facts": context_fact(request.model, model) | settings_facts(detector, options),
            "options": {name: getattr(options, name) for name in GATHERED},
            "track name": model.card.positive,
            "expected": model.card.locator,
            "species": options.species or origin.species,
            "foreign": options.species is None and origin.is_foreign,
        }
        write_shard(target, header | {"skipped": kept} | facts, arrays)
    skips = f", {len(kept)} records skipped" if kept else ""
    return records.count, [f"shard {number}/{total}: {header['counted']['windows']} {detector.unit}{skips}"]
