"""What ``seqray split`` writes: the table, the proof, its header and a summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from seqray.core.alphabet import Alphabet
from seqray.core.records import LabeledSequence
from seqray.core.text import counted, format_number
from seqray.homology.options import PARTS, RelationOptions, SplitOptions
from seqray.homology.proof import QUANTILES, ProofLine, proof_lines
from seqray.homology.relatives import Related
from seqray.homology.similarity import expected_sensitivity
from seqray.homology.split import Division
from seqray.io.files import Staging
from seqray.io.labeled import write_labeled_table
from seqray.io.tables import describe_alphabet, provenance_lines, write_table

REPORTED = 0.8  # threshold of the proof if no identity is requested
MIN_GIANT_SHARE = 0.2  # of the examples: such a group is reported
COLUMNS = ("boundary", "against", "class", "sequences", "shared_word", "above")
LAST_COLUMNS = ("max", "id", "nearest_id")


@dataclass(frozen=True)
class SplitResult:
    """The result of a run."""

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
        return [
            line
            for boundary in self.division.boundaries
            for line in proof_lines(boundary, labels, self.threshold)
        ]

    def parts(self) -> dict[str, Counter[str]]:
        """Examples of each class in each part or fold."""
        counts: dict[str, Counter[str]] = {}
        for example, split, fold in zip(self.data, self.division.split, self.division.fold, strict=True):
            name = f"fold {fold}" if fold else split
            if name:
                counts.setdefault(name, Counter())[example.label] += 1
        order = [*PARTS, *(f"fold {k}" for k in range(1, self.options.folds + 1))]
        return {name: counts[name] for name in order if name in counts}


def leaking(result: SplitResult) -> bool:
    """Whether a held-out sequence reaches the threshold, or shares a word with the other side."""
    return any(line.above or line.shared for line in result.proof if line.label == "all")


def header(command: Sequence[str], result: SplitResult) -> list[str]:
    """Provenance of both outputs: settings, groups, parts and the proof in words."""
    facts: dict[str, object] = {f"relatives by {n}": t for n, t in result.related.reasons.items()}
    if result.relation.identity and result.relation.tool == "seqray":
        sequences = [example.sequence for example in result.data]
        found = expected_sensitivity(sequences, result.relation.identity, result.alphabet)
        facts["search"] = f"finds {found:.1%} of the pairs at the threshold (simulated, median length)"
    facts["groups"] = groups_text(result)
    facts["seed"] = result.options.seed
    for name, counts in result.parts().items():
        facts[name] = ", ".join(f"{label} {counts[label]}" for label in sorted(counts))
    if result.options.keep:
        facts["kept"] = f"{', '.join(result.options.keep)}; {_dropped_text(result)}"
    for line in result.proof:
        facts[f"proof, {line.boundary} against {line.against}, {line.label}"] = proof_text(result, line)
    if result.division.mended:
        facts["proof"] = f"{result.division.mended} pairs that it found were brought to one side"
    return provenance_lines(command, "", "", describe_alphabet(result.alphabet), facts)


def groups_text(result: SplitResult) -> str:
    """Count the groups."""
    sizes = Counter(result.division.groups.tolist())
    largest = max(sizes.values(), default=0)
    return f"{len(sizes)} of {len(result.data)} examples, the largest of {largest}"


def _dropped_text(result: SplitResult) -> str:
    if result.options.relatives == "join":
        parts = zip(result.data, result.division.split, strict=True)
        joined = sum(split in result.options.keep and example.split != split for example, split in parts)
        return f"{joined} other examples joined them as relatives"
    count = int(result.division.dropped.sum())
    return f"{count} other examples left out as relatives of these"


def proof_text(result: SplitResult, line: ProofLine, *, names: bool = False) -> str:
    """One line of the proof in words; ``names`` adds the ids of the most similar pair."""
    pair = f" ({_id(result, line.row)} and {_id(result, line.nearest)})" if names else ""
    text = f"highest identity {_number(line.highest)}{pair}, "
    text += ", ".join(
        f"{q:.0%} quantile {_number(v)}" for q, v in zip(QUANTILES, line.quantiles, strict=True)
    )
    text += f"; {line.above} of {line.sequences} at {result.threshold:g} or above"
    if line.shared is not None:
        text += f"; {line.shared} share a {result.relation.word}-mer"
    return text


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _id(result: SplitResult, row: int) -> str:
    return result.data[row].id if row >= 0 else "."


def write(out: str, proof: str | None, result: SplitResult, lines: Sequence[str]) -> None:
    """Write the table and the proof, both or neither.

    Without a path of the ``proof`` none is written. ``lines`` are the provenance, without ``#``.
    """
    chosen = [i for i in range(len(result.data)) if not result.division.dropped[i]]
    division = result.division
    examples = [
        replace(result.data[i], split=division.split[i], group=str(int(division.groups[i]) + 1))
        for i in chosen
    ]
    folds = [division.fold[i] for i in chosen] if result.options.folds else None
    with Staging() as staging:
        if proof:
            _write_proof(staging.path(proof), result, lines)
        write_labeled_table(staging.path(out), examples, lines, folds=folds)


def _write_proof(path: str | Path, result: SplitResult, lines: Sequence[str]) -> None:
    """Write one row for each boundary and class; ``all`` means all classes together."""
    names = (*COLUMNS, *(f"q{round(100 * q)}" for q in QUANTILES), *LAST_COLUMNS)
    write_table(path, names, (_proof_cells(result, line) for line in result.proof), lines)


def _proof_cells(result: SplitResult, line: ProofLine) -> list[object]:
    shared = "." if line.shared is None else line.shared
    cells = [line.boundary, line.against, line.label, line.sequences, shared, line.above]
    cells += map(format_number, (*line.quantiles, line.highest))
    return [*cells, _id(result, line.row), _id(result, line.nearest)]


def summary(result: SplitResult) -> list[str]:
    """Summarize the parts and how similar they are."""
    counts = ", ".join(f"{name} {sum(c.values())}" for name, c in result.parts().items())
    lines = [f"groups: {groups_text(result)}; {counts}"]
    if result.skipped:
        lines.append(f"{result.skipped} records without letters were left out")
    if result.options.keep:
        kept = "kept" if result.options.relatives == "join" else "kept as it is"
        lines.append(f"{kept}: {', '.join(result.options.keep)}; {_dropped_text(result)}")
    if not result.options.folds and not result.parts().get("train"):
        lines.append("caution: no example is left to train on")
    lines += [*_repeated_id_caution(result.data), *_largest_group_caution(result)]
    worst = [line for line in result.proof if line.label == "all"]
    if result.options.folds:
        worst = sorted(worst, key=lambda line: -line.highest)[:1]
    for line in worst:
        where = f"{line.boundary} against {line.against}"
        lines.append(f"{where}: {proof_text(result, line, names=True)}")
    if leaking(result):
        lines.append(f"caution: a boundary leaks; {_advice(result)}")
    return lines


def _advice(result: SplitResult) -> str:
    if result.options.keep:
        return "parts that are kept are related to each other; keep fewer of them"
    if not result.relation.identity or not result.relation.word:
        return "use --identity and --word to keep relatives together"
    return "lower --identity a little"


def _largest_group_caution(result: SplitResult) -> list[str]:
    sizes = Counter(result.division.groups.tolist())
    largest = max(sizes.values(), default=0)
    share = largest / max(len(result.data), 1)
    if share < MIN_GIANT_SHARE or largest < 2 or len(sizes) < 2:
        return []
    held = f"holds {share:.0%} of the examples"
    rows = [i for i, group in enumerate(result.division.groups.tolist()) if sizes[group] == largest]
    if named := shared_group(result.data[i] for i in rows):
        return [f"caution: the largest group {held}: {named}"]
    remedy = "raise --identity or --word, or leave repeats out of the data"
    return [f"caution: the largest group, a chain of relatives, {held}; {remedy}"]


def shared_group(examples: Iterable[LabeledSequence]) -> str:
    """What to do if most examples have one name in the column ``group``, such as NA; else an empty text."""
    counts = Counter(example.group for example in examples)
    name, count = counts.most_common(1)[0]
    if not name or count <= counts.total() / 2:
        return ""
    return f"column 'group' has '{name}' in {count} rows; empty these cells if their group is not known"


def _repeated_id_caution(data: Sequence[LabeledSequence]) -> list[str]:
    counts = Counter(example.id for example in data)
    repeated = [name for name, count in counts.items() if count > 1]
    if not repeated:
        return []
    found = f"{counted(len(repeated), 'id')}, such as '{repeated[0]}', of more than one example"
    return [f"caution: the data have {found}; evaluate --labels takes each id once"]
