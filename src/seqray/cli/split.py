"""``seqray split``: split labeled sequences, relatives together."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from seqray.cli import options
from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.labeled import INFERRED_ALPHABET, TableOptions, describe_letters, naming_alphabet
from seqray.cli.messages import Progress
from seqray.cli.options import Options, Outcome, Request, fill, option, refuse_unused
from seqray.core.errors import ConfigError, InputError, fields_named
from seqray.core.labels import label_faults
from seqray.core.records import LabeledSequence, files_of
from seqray.core.text import class_counts, counted, first_and_more, format_number, parse_float
from seqray.homology.options import BLOCK, PARTS, RelationOptions, SplitOptions, shares_of_parts

if TYPE_CHECKING:
    from seqray.core.alphabet import Alphabet
    from seqray.core.results import SkippedRecord
    from seqray.homology.similarity import Related
    from seqray.homology.split import Division, ProofLine


# --- Options of ``seqray split``

LEAK = 3  # exit status under --strict
RELATION, SPLIT = RelationOptions(), SplitOptions()


def _shares(text: str) -> tuple[float, float, float]:
    with fields_named({"shares": "--shares"}):
        return shares_of_parts(map(parse_float, text.split(",")))


Shares = Annotated[tuple[float, float, float], _shares]


class RelativesOptions(Options, heading="relatives: which examples stay together"):
    """Which examples are related."""

    identity: options.Probability = option(
        "--identity X", "sequences of this identity or more, by alignment; 0 for none", RELATION.identity
    )
    word: options.WholeNumber | None = option(
        "--word K",
        "sequences that share a k-mer of K positions; 0 for none (default: half a length, up to 40, protein "
        "10, as in seqray audit)",
    )
    one_strand: bool = option("--one-strand", "don't compare with the reverse complement")
    group_by: tuple[str, ...] = option(
        "--group-by COLUMN",
        "examples with the same text in a column, such as a gene or species; may be repeated",
    )
    positions: str | None = option(
        "--positions id|CONTIG,POSITION",
        "neighbors in the genome: ids such as chr1:1234:+, or the names of two columns",
    )
    block: options.PositiveInt = option(
        "--block N", "with --positions: bases of the genome that stay together", BLOCK, only_for="positions"
    )


class DivisionOptions(Options, heading="division"):
    """How groups of relatives are divided."""

    shares: Shares | None = option(
        "--shares A,B,C",
        "shares of train, validation and test, or of train and test, that sum to 1; or ratios such as 8,1,1 "
        f"(default: {','.join(map(str, SPLIT.shares))})",
    )
    folds: options.PositiveInt | None = option(
        "--folds K", "write a column 'fold' with 1 to K instead of three parts"
    )
    keep: tuple[str, ...] = option(
        "--keep", "leave the examples of this split as the data have them; may be repeated", choices=PARTS
    )
    relatives: Literal["drop", "join"] = option(
        "--relatives",
        "other examples related to kept ones: leave them out (drop), or move them to their split (join)",
        SPLIT.relatives,
        only_for="keep",
    )
    seed: options.WholeNumber = option("--seed N", "seed of the division", SPLIT.seed)


class SplitRequest(Request):
    """All options of ``seqray split``."""

    data: TableOptions
    alphabet: str | None = INFERRED_ALPHABET
    out: str = option("--out -o FILE", "table with the split (default: standard output)", "-")
    proof: str | None = option("--proof FILE", "write how similar the parts are to a TSV")
    relation: RelativesOptions
    division: DivisionOptions
    strict: bool = option("--strict", f"exit with {LEAK} if the proof finds a leak")


# --- Read, group, divide, prove, write and report

MIN_IDENTITY = {"dna": 0.65, "rna": 0.65, "protein": 0.3}  # below, unrelated sequences reach it by chance
OWN_COLUMNS = ("id", "label", "group", "split", "context", "subclass")


def run(request: SplitRequest) -> Outcome:
    """Split labeled sequences so that no relative of a test sequence is in training."""
    _check(request)
    from seqray.homology.kmers import named_relations, word_length
    from seqray.homology.similarity import find_relatives
    from seqray.homology.split import split_data
    from seqray.kinds.kinds import read_sequence_examples

    skipped: list[SkippedRecord] = []
    named = request.relation
    used = [name.lower() for name in (*named.group_by, *(named.positions or "").split(",")) if name]
    columns = {name: list[str]() for name in used if name not in OWN_COLUMNS}
    if columns and request.data.class_files:
        raise InputError(f"FASTA files have no column '{next(iter(columns))}'", remedy="give a table")
    with naming_alphabet():
        files = replace(request.data.located(request, used=used), keep=columns)
        data, alphabet = read_sequence_examples(files, request.alphabet, on_skip=skipped.append)
    lowest = MIN_IDENTITY[alphabet.name]
    if 0 < named.identity < lowest:
        what = f"which unrelated {alphabet.name} sequences may reach by chance"
        remedy = f"give {lowest:g} or more, or 0 for none"
        raise ConfigError(f"--identity is {named.identity:g}, {what}", remedy=remedy)
    division = fill(SplitOptions, request.division, keep=tuple(dict.fromkeys(request.division.keep)))
    sequences = [example.sequence for example in data]
    word = word_length(sequences, alphabet) if named.word is None else named.word
    relation = fill(RelationOptions, named, word=word, both_strands=not named.one_strand)
    columns |= {name: [getattr(example, name) or "" for example in data] for name in OWN_COLUMNS}
    others = named_relations(data, columns, named.group_by, named.positions, named.block)
    with Progress("align similar sequences", "pairs", quiet=request.quiet) as progress:
        related = find_relatives(sequences, alphabet, relation, others, progress.update)
    try:
        with Progress("align held-out sequences", "sequences", quiet=request.quiet) as progress:
            divided = split_data(data, related, alphabet, division, relation, progress.update)
    except InputError as error:
        remedy = error.remedy and (shared_group(data) or error.remedy)
        raise InputError(error.what, where=error.where or files_of(data), remedy=remedy) from None
    result = SplitResult(data, alphabet, relation, division, related, divided, len(skipped))
    result.write(request.out, request.proof, request.command)
    if request.alphabet is None and alphabet.name != "dna":
        request.note(f"the letters are those of {describe_letters(alphabet.name)} (--alphabet names others)")
    if not division.keep and any(example.split for example in data):
        request.note("the column 'split' of the data is replaced; to keep a part as it is, give --keep test")
    if relation.word > max(map(len, sequences), default=relation.word):
        request.note(f"no sequence has {relation.word} letters, so none share a k-mer: give a smaller --word")
    request.note(*result.summary())
    return Outcome(records=len(data), status=LEAK if request.strict and result.leaks else 0)


def _check(request: SplitRequest) -> None:
    check_suffix(request.out, ".tsv", ".csv")
    check_suffix(request.proof, ".tsv")
    check_files(request.data.files(), [request.out, request.proof])
    absent = {}
    if request.relation.positions is None:
        absent["positions"] = ("is for neighbors in a genome", "add --positions")
    if not request.division.keep:
        absent["keep"] = ("is for relatives of kept examples", "add --keep")
    refuse_unused(request, absent)
    if request.division.folds is not None and request.division.shares is not None:
        raise ConfigError("--folds and --shares are given", remedy="choose one")
    if request.division.folds == 1:
        raise ConfigError("--folds is 1", remedy="give 2 or more")
    positions = request.relation.positions
    if positions not in (None, "id") and not re.fullmatch("[^,]+,[^,]+", positions):
        remedy = "write id, or two columns CONTIG,POSITION"
        raise ConfigError(f"--positions is '{positions}'", remedy=remedy)


# --- The table, the proof, its header and the summary

REPORTED = 0.8  # threshold of the proof if no identity is requested
MIN_GIANT_SHARE = 0.2  # of the examples: such a group is reported


@dataclass(frozen=True)
class SplitResult:
    """The result of a run, and how it is written and told."""

    data: Sequence[LabeledSequence]
    alphabet: Alphabet
    relation: RelationOptions
    options: SplitOptions
    related: Related
    division: Division
    skipped: int = 0

    @property
    def threshold(self) -> float:
        """Identity that no pair across a boundary should reach."""
        return self.relation.identity or REPORTED

    @cached_property
    def proof(self) -> list[ProofLine]:
        """All lines of the proof."""
        from seqray.homology.split import proof_lines

        labels = [example.label for example in self.data]
        lines = (proof_lines(boundary, labels, self.threshold) for boundary in self.division.boundaries)
        return [line for of_boundary in lines for line in of_boundary]

    @property
    def leaks(self) -> bool:
        """Whether a held-out sequence reaches the threshold, or shares a word with the other side."""
        return any(line.above or line.shared for line in self.proof if line.label == "all")

    @cached_property
    def parts(self) -> dict[str, Counter[str]]:
        """Examples of each class in each part or fold."""
        counts: dict[str, Counter[str]] = {}
        for example, split, fold in zip(self.data, self.division.split, self.division.fold, strict=True):
            name = f"fold {fold}" if fold else split
            if name:
                counts.setdefault(name, Counter())[example.label] += 1
        order = [*PARTS, *(f"fold {k}" for k in range(1, self.options.folds + 1))]
        return {name: counts[name] for name in order if name in counts}

    def write(self, out: str, proof: str | None, command: Sequence[str]) -> None:
        """Write the table and the proof, both or neither; without a path of the ``proof`` none is written."""
        from seqray.homology.split import QUANTILES
        from seqray.io.files import Staging
        from seqray.io.sequences import write_labeled_table
        from seqray.io.tables import write_table

        lines, division = self._header(command), self.division
        chosen = [i for i, dropped in enumerate(division.dropped) if not dropped]
        examples = [
            replace(self.data[i], split=division.split[i], group=str(int(division.groups[i]) + 1))
            for i in chosen
        ]
        folds = [division.fold[i] for i in chosen] if self.options.folds else None
        with Staging() as staging:
            if proof:
                names = ["boundary", "against", "class", "sequences", "shared_word", "above"]
                names += [*(f"q{round(100 * q)}" for q in QUANTILES), "max", "id", "nearest_id"]
                write_table(staging.path(proof), names, map(self._proof_cells, self.proof), lines)
            write_labeled_table(staging.path(out), examples, lines, folds=folds)

    def _header(self, command: Sequence[str]) -> list[str]:
        """Provenance of both outputs: settings, groups, parts and the proof in words."""
        from seqray.homology.similarity import group_plan
        from seqray.io.tables import describe_alphabet, provenance_lines

        facts: dict[str, object] = {f"relatives by {n}": t for n, t in self.related.reasons.items()}
        if self.relation.identity:
            sequences = [example.sequence for example in self.data]
            share = group_plan(sequences, self.relation.identity, self.alphabet).sensitivity
            facts["search"] = f"finds {share:.1%} of the pairs at the threshold (simulated, median length)"
        facts["groups"] = self._groups_text()
        facts["seed"] = self.options.seed
        for name, counts in self.parts.items():
            facts[name] = class_counts({label: counts[label] for label in sorted(counts)})
        if self.options.keep:
            facts["kept"] = f"{', '.join(self.options.keep)}; {self._dropped_text()}"
        for line in self.proof:
            facts[f"proof, {line.boundary} against {line.against}, {line.label}"] = self._proof_text(line)
        if self.division.mended:
            facts["proof"] = f"{self.division.mended} pairs that it found were brought to one side"
        return provenance_lines(command, "", "", describe_alphabet(self.alphabet), facts)

    def _proof_cells(self, line: ProofLine) -> list[object]:
        """A row for a boundary and class; ``all`` means all classes together."""
        shared = "." if line.shared is None else line.shared
        cells = [line.boundary, line.against, line.label, line.sequences, shared, line.above]
        cells += map(format_number, (*line.quantiles, line.highest))
        return [*cells, self._id(line.row), self._id(line.nearest)]

    def _id(self, row: int) -> str:
        return self.data[row].id if row >= 0 else "."

    def _groups_text(self) -> str:
        sizes = Counter(self.division.groups.tolist())
        largest = max(sizes.values(), default=0)
        return f"{len(sizes)} of {len(self.data)} examples, the largest of {largest}"

    def _dropped_text(self) -> str:
        if self.options.relatives == "join":
            parts = zip(self.data, self.division.split, strict=True)
            joined = sum(split in self.options.keep and e.split != split for e, split in parts)
            return f"{joined} other examples joined them as relatives"
        count = int(self.division.dropped.sum())
        return f"{count} other examples left out as relatives of these"

    def _proof_text(self, line: ProofLine, *, names: bool = False) -> str:
        """One line of the proof in words; ``names`` adds the ids of the most similar pair."""
        from seqray.homology.split import QUANTILES

        highest, *quantiles = (
            "-" if math.isnan(value) else f"{value:.3f}" for value in (line.highest, *line.quantiles)
        )
        pair = f" ({self._id(line.row)} and {self._id(line.nearest)})" if names else ""
        text = f"highest identity {highest}{pair}, "
        text += ", ".join(f"{q:.0%} quantile {v}" for q, v in zip(QUANTILES, quantiles, strict=True))
        text += f"; {line.above} of {line.sequences} at {self.threshold:g} or above"
        if line.shared is not None:
            text += f"; {line.shared} share a {self.relation.word}-mer"
        return text

    def summary(self) -> list[str]:
        """Summarize the parts and how similar they are."""
        keep, folds = self.options.keep, self.options.folds
        counts = ", ".join(f"{name} {sum(c.values())}" for name, c in self.parts.items())
        lines = [f"groups: {self._groups_text()}; {counts}"]
        if self.skipped:
            lines.append(f"{self.skipped} records without a sequence were left out")
        if keep:
            how = "kept" if self.options.relatives == "join" else "kept as it is"
            lines.append(f"{how}: {', '.join(keep)}; {self._dropped_text()}")
        if not folds and not self.parts.get("train"):
            lines.append("caution: no example is left to train on")
        repeated = [name for name, n in Counter(e.id for e in self.data).items() if n > 1]
        if repeated:
            ids = f"{counted(len(repeated), 'id')}, such as '{repeated[0]}', of more than one example"
            lines.append(f"caution: the data have {ids}; evaluate --labels takes each id once")
        lines += (f"caution: {fault}" for fault in label_faults([replace(e, split=None) for e in self.data]))
        lacking = []  # classes that a part lacks: nothing can be measured of them there
        for label, size in sorted(Counter(example.label for example in self.data).items()):
            if parts := [name for name, counts in self.parts.items() if not counts[label]]:
                names = first_and_more(parts, 5, of="parts")
                lacking.append(f"no '{label}' ({counted(size, 'example')}) in {names}")
        if lacking:
            remedy = "give fewer folds, or more examples" if folds else "give more examples"
            lines.append(f"caution: {first_and_more(lacking, 3, separator='; ')}; {remedy}")
        lines += self._largest_group_caution()
        worst = [line for line in self.proof if line.label == "all"]
        if folds:
            worst = sorted(worst, key=lambda line: -line.highest)[:1]
        for line in worst:
            lines.append(f"{line.boundary} against {line.against}: {self._proof_text(line, names=True)}")
        if self.leaks:
            advice = "lower --identity a little"
            if keep:
                advice = "parts that are kept are related to each other; keep fewer of them"
            elif not self.relation.identity or not self.relation.word:
                advice = "use --identity and --word to keep relatives together"
            lines.append(f"caution: a boundary leaks; {advice}")
        return lines

    def _largest_group_caution(self) -> list[str]:
        groups = self.division.groups.tolist()
        sizes = Counter(groups)
        largest = max(sizes.values(), default=0)
        share = largest / max(len(self.data), 1)
        if share < MIN_GIANT_SHARE or largest < 2 or len(sizes) < 2:
            return []
        remedy = "raise --identity or --word, or leave repeats out of the data"
        text = f", a chain of relatives, holds {share:.0%} of the examples; {remedy}"
        if what := shared_group(
            e for e, group in zip(self.data, groups, strict=True) if sizes[group] == largest
        ):
            text = f" holds {share:.0%} of the examples: {what}"
        return [f"caution: the largest group{text}"]


def shared_group(examples: Iterable[LabeledSequence]) -> str:
    """What to do if most examples have one name in the column ``group``, such as NA; else an empty text."""
    counts = Counter(example.group for example in examples)
    name, count = counts.most_common(1)[0]
    if not name or count <= counts.total() / 2:
        return ""
    return f"column 'group' has '{name}' in {count} rows; empty these cells if their group is not known"
