"""Outputs of ``seqray negatives``: the table, its header, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.common import describe_labels
from seqray.core import ConfigError, InputError
from seqray.datasets.negatives import RECIPES

if TYPE_CHECKING:
    from seqray.cli.negatives.arguments import TableOutput
    from seqray.core import Alphabet, LabeledSequence
    from seqray.datasets.negatives import NegativeOptions, NegativeSet

FORMATS = {".tsv": "tsv", ".csv": "csv", ".fa": "fasta", ".fasta": "fasta", ".fna": "fasta"}


def output_format(output: TableOutput) -> str:
    """Format of the output: ``tsv``, ``csv`` or ``fasta``."""
    name = output.out.lower().removesuffix(".gz")
    known = next((kind for end, kind in FORMATS.items() if name.endswith(end)), None)
    kind = known or output.format or ("tsv" if output.out == "-" else None)
    if kind is None:
        remedy = "use .tsv, .csv, .fa or --format"
        raise InputError("does not end in the suffix of a known format", where=output.out, remedy=remedy)
    if output.format not in (None, kind):
        raise ConfigError(
            f"--format {output.format} and '{output.out}' are different formats", remedy="leave out --format"
        )
    if kind == "fasta" and not output.only_negatives:
        raise ConfigError("FASTA files can't contain labels", remedy="add --only-negatives, or write a table")
    if output.label_positive == output.label:
        raise ConfigError("positives and negatives have the same label", remedy="give --label-negative")
    return kind


def provenance(command: Sequence[str], alphabet: Alphabet, extra: dict[str, object]) -> list[str]:
    """Build the header of every output, which names no model."""
    from seqray.io.tables import describe_alphabet, provenance_lines

    lines = provenance_lines(command, "", "", describe_alphabet(alphabet), extra)
    return [line for line in lines if not line.startswith("model:")]


def facts(result: NegativeSet, options: NegativeOptions, others: Counter[str]) -> dict[str, object]:
    """What was made, for the header; ``others`` counts labels of rows that were left out."""
    about: dict[str, object] = {"positives": len(result.positives), "seed": options.seed}
    if others:
        about["rows left out for their label"] = describe_labels(others)
    for name, count in result.made.items():
        about[f"recipe {name}"] = f"{count} of {result.wanted[name]}; {RECIPES[name].makes}"
        about[f"recipe {name} teaches"] = RECIPES[name].teaches
    if result.placed is not None:
        about["positives found in the genome"] = result.placed
        like = f"length and GC content ({options.gc_bins} bins)" if options.gc_bins else "length"
        about["windows match"] = f"{like} of a positive; share at most {options.max_overlap} letters"
        about["id of a window"] = "recipe:contig:start-end:strand, 0-based, half-open"
    return about


def write(path: str | Path, kind: str, examples: Sequence[LabeledSequence], lines: Sequence[str]) -> None:
    """Write a table (``tsv``, ``csv``) or a FASTA file; ``.gz`` is compressed.

    ``lines`` are the provenance, without ``#``; FASTA has none.
    """
    from seqray.io import encode_text, open_output
    from seqray.io.tables import write_labeled_table

    if kind != "fasta":
        write_labeled_table(path, examples, lines, subclasses=True)
        return
    with open_output(path) as handle:
        for example in examples:
            handle.write(encode_text(f">{example.id} {example.label}\n{example.sequence}\n"))


def shortages(result: NegativeSet) -> list[str]:
    """A line for each recipe that gave fewer negatives than requested."""
    return [
        f"recipe '{name}' gave {count} of {result.wanted[name]} negatives, "
        + ("no more were found" if RECIPES[name].genome else "the positives assigned to it allow no more")
        for name, count in result.made.items()
        if count < result.wanted[name]
    ]


def summary(result: NegativeSet, others: Counter[str]) -> list[str]:
    """Summarize what was made, what a model learns from it, and cautions; ``others`` as in `facts`."""
    lines = [
        f"{name}: {count} negatives; teaches {RECIPES[name].teaches}" for name, count in result.made.items()
    ]
    lines += [f"caution: {short}" for short in shortages(result)]
    if others:
        left_out = describe_labels(others)
        lines.append(f"caution: rows of other labels than that of the positives are left out: {left_out}")
    n = len(result.positives)
    if result.placed is not None and result.placed < n:
        lines.append(
            f"caution: {n - result.placed} of {n} positives were not found in the genome, so a negative may "
            "overlap one of them"
        )
    ambiguous = sum(bool(set(e.sequence) - set("ACGTU")) for e in result.positives)
    if result.placed is not None and ambiguous:
        lines.append(f"caution: {ambiguous} positives contain ambiguous letters, which windows never do")
    return lines
