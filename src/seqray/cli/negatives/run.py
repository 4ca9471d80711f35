"""``seqray negatives``: make negatives for positives, and note what a model learns from them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from seqray.cli.common import Outcome, SkipLog, check_files, fill, given, naming_alphabet
from seqray.cli.negatives.arguments import NegativesRequest
from seqray.core import ALPHABETS, ConfigError, InputError
from seqray.datasets.negatives import RECIPES, parse_mix

if TYPE_CHECKING:
    from seqray.datasets.negatives import NegativeOptions, NegativeSet

__all__ = ["NegativesRequest", "run"]

ONLY_FOR = {"--shuffle-words": "shuffle", "--segments": "substitution", "--keep": "substitution"}
"""Options of one recipe."""


def run(request: NegativesRequest) -> Outcome:
    """Read, make, write, and report what was made."""
    from seqray.cli.negatives import inputs, outputs

    options = negative_options(request)
    kind = outputs.output_format(request.output)
    _refuse_without_effect(request, options)
    out, genome, records = request.output, request.genome, request.records
    beside = (genome.genome, genome.annotation, genome.starts)
    check_files([request.positives], [out.out, records.skipped], beside=beside)
    from seqray.datasets.negatives import make_negatives
    from seqray.io import Staging, keep_pipes

    keep_pipes(request.positives, genome.genome)  # their format is found before they are read
    alphabet = ALPHABETS[records.alphabet]
    with Staging() as staging:
        skip_path = records.skipped and staging.path(records.skipped)
        with SkipLog(
            skip_path, outputs.provenance(request.command, alphabet, {}), quiet=request.quiet
        ) as skipped:
            others = Counter[str]()
            with naming_alphabet():
                positives = list(inputs.read_positives(request, alphabet, skipped, others))
        context, notes = inputs.read_genome_context(genome, alphabet, options.mix)
        result = make_negatives(positives, options, alphabet, context) if positives else _nothing(options)
        if records.strict and (short := outputs.shortages(result)):
            raise InputError(short[0], remedy="ask for fewer, match less closely, or leave out --strict")
        facts = outputs.facts(result, options, others) | notes
        examples = [*(() if out.only_negatives else result.positives), *result.negatives]
        header = outputs.provenance(request.command, alphabet, facts)
        outputs.write(staging.path(out.out), kind, examples, header)
    request.note(*outputs.summary(result, others))
    return Outcome()


def _refuse_without_effect(request: NegativesRequest, options: NegativeOptions) -> None:
    """Refuse options of recipes that are not asked for."""
    if not any(RECIPES[name].genome for name in options.mix) and (words := given(request.genome)):
        windows = " or ".join(name for name, recipe in RECIPES.items() if recipe.genome)
        raise ConfigError(f"{words[0]} is for windows of a genome", remedy=f"add --recipe {windows}")
    for word in given(request.recipes):
        if ONLY_FOR.get(word, word) not in (word, *options.mix):
            raise ConfigError(f"{word} is for recipe '{ONLY_FOR[word]}'", remedy="leave it out")


def _nothing(options: NegativeOptions) -> NegativeSet:
    from seqray.datasets.negatives import NegativeSet

    none = dict.fromkeys(options.mix, 0)
    return NegativeSet((), (), none, none, None)


def negative_options(request: NegativesRequest) -> NegativeOptions:
    """What to make."""
    from seqray.datasets.negatives import NegativeOptions

    genome = request.genome
    return fill(
        NegativeOptions,
        request.recipes,
        genome,
        mix=parse_mix(request.recipes.recipe),
        label=request.output.label,
        gc_bins=genome.gc_bins if genome.match == "gc" else 0,
    )
