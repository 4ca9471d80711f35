"""What ``seqray split`` writes: the table, the proof, its header and a summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.labels import label_faults
from seqray.core.records import LabeledSequence
from seqray.core.text import class_counts, counted, first_and_more, format_number
from seqray.homology.options import PARTS, RelationOptions, SplitOptions
from seqray.homology.similarity import Related, group_plan
from seqray.homology.split import QUANTILES, Division, ProofLine, proof_lines
from seqray.io.files import Staging
from seqray.io.sequences import write_labeled_table
from seqray.io.tables import describe_alphabet, provenance_lines, write_table

REPORTED = 0.8  # threshold of the proof if no identity is requested
MIN_GIANT_SHARE = 0.2  # of the examples: such a group is reported
COLUMNS = ("boundary", "against", "class", "sequences", "shared_word", "above")
LAST_COLUMNS = ("max", "id", "nearest_id")


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

    @cached_property
    def group_sizes(self) -> Counter[int]:
        """Examples of each group."""
        return Counter(self.division.groups.tolist())

    def write(self, out: str, proof: str | None, command: Sequence[str]) -> None:
        """Write the table and the proof, both or neither; without a path of the ``proof`` none is written."""
        lines, division = self._header(command), self.division
        chosen = np.flatnonzero(~np.asarray(division.dropped)).tolist()
        examples = [
            replace(self.data[i], split=division.split[i], group=str(int(division.groups[i]) + 1))
            for i in chosen
        ]
        folds = [division.fold[i] for i in chosen] if self.options.folds else None
        with Staging() as staging:
            if proof:
                names = (*COLUMNS, *(f"q{round(100 * q)}" for q in QUANTILES), *LAST_COLUMNS)
                write_table(staging.path(proof), names, map(self._proof_cells, self.proof), lines)
            write_labeled_table(staging.path(out), examples, lines, folds=folds)

    def _header(self, command: Sequence[str]) -> list[str]:
        """Provenance of both outputs: settings, groups, parts and the proof in words."""
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
        largest = max(self.group_sizes.values(), default=0)
        return f"{len(self.group_sizes)} of {len(self.data)} examples, the largest of {largest}"

    def _dropped_text(self) -> str:
        if self.options.relatives == "join":
            parts = zip(self.data, self.division.split, strict=True)
            joined = sum(split in self.options.keep and e.split != split for e, split in parts)
            return f"{joined} other examples joined them as relatives"
        count = int(self.division.dropped.sum())
        return f"{count} other examples left out as relatives of these"

    def _proof_text(self, line: ProofLine, *, names: bool = False) -> str:
        """One line of the proof in words; ``names`` adds the ids of the most similar pair."""
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
            lines.append(f"{self.skipped} records without letters were left out")
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
        lines += self._missing_classes_caution()
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

    def _missing_classes_caution(self) -> list[str]:
        """Classes that a part lacks: nothing can be measured of them there."""
        lacking = []
        for label, size in sorted(Counter(example.label for example in self.data).items()):
            if parts := [name for name, counts in self.parts.items() if not counts[label]]:
                names = first_and_more(parts, 5, of="parts")
                lacking.append(f"no '{label}' ({counted(size, 'example')}) in {names}")
        remedy = "give fewer folds, or more examples" if self.options.folds else "give more examples"
        return [f"caution: {first_and_more(lacking, 3, separator='; ')}; {remedy}"] if lacking else []

    def _largest_group_caution(self) -> list[str]:
        sizes = self.group_sizes
        largest = max(sizes.values(), default=0)
        share = largest / max(len(self.data), 1)
        if share < MIN_GIANT_SHARE or largest < 2 or len(sizes) < 2:
            return []
        groups = self.division.groups.tolist()
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
