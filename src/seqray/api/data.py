"""The verbs of labeled data as functions: train, evaluate, audit, split and negatives."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from seqray.api.estimator import restored_state
from seqray.api.verbs import Model, listed, opened, step_bar, warned
from seqray.core.alphabet import Alphabet, alphabet_of
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError, require, require_number
from seqray.core.host import as_guest
from seqray.core.labels import choose_split
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.results import Answers, Audit, SkippedRecord
from seqray.core.text import INTERVAL_DRAWS, Truncation, counted
from seqray.datasets.audit.run import audit as find_faults
from seqray.datasets.negatives.genome import read_genome_context
from seqray.datasets.negatives.make import cautions, make_negatives, positives_among, positives_in
from seqray.datasets.negatives.recipes import RECIPES, GenomeSource, NegativeOptions, parse_mix
from seqray.evaluation.floor import answers_from_probabilities, floor_answers
from seqray.evaluation.run import Records, check_probabilities, evaluate_examples, group_keys, label_indices
from seqray.homology.kmers import named_relations, word_length
from seqray.homology.options import BLOCK, RelationOptions, SplitOptions
from seqray.homology.similarity import find_relatives
from seqray.homology.split import proof_lines, split_data
from seqray.inference.origin import CAUTION
from seqray.io.files import temporary_folder
from seqray.io.predictions import probability_column
from seqray.io.summaries import figure_row
from seqray.io.tables import Columns
from seqray.kinds.kinds import LabeledFiles, judge_examples, kind_of, read_sequence_examples
from seqray.kinds.objects import as_records, is_path
from seqray.modelfile.file import load_model
from seqray.modelfile.header import SUFFIX
from seqray.modelfile.model import TrainedModel
from seqray.training.final_card import card_cautions
from seqray.training.members import RunOptions
from seqray.training.plan import TrainSettings, model_name, plan_training
from seqray.training.recalibration import seen_in_training

RELATION, SPLIT, NEGATIVES, SOURCE = RelationOptions(), SplitOptions(), NegativeOptions({}), GenomeSource()


def labeled_files(data: Any, columns: Columns | None = None, keep: Sequence[str] = ()) -> LabeledFiles:
    """Labeled examples in any form: see `train`. ``keep`` names further columns of tables and frames."""
    if isinstance(data, Mapping):
        return LabeledFiles(fastas=data)
    table = str | Path | pd.DataFrame
    things = [data] if isinstance(data, table) else list(() if data is None else data)
    if all(isinstance(one, table) for one in things):
        kept: dict[str, list[str]] = {name.lower(): [] for name in keep}
        return LabeledFiles(tables=[(None, one) for one in things], keep=kept, columns=columns)
    return LabeledFiles(examples=things)


@as_guest
def train(
    data: Any = None,
    out: str | Path | None = None,
    *,
    columns: Columns | None = None,
    metrics: Mapping[str, Any] | None = None,
    work_dir: str | Path | None = None,
    resume: bool = True,
    restart_if_changed: bool = False,
    threads: int | None = None,
    callbacks: Sequence[Any] = (),
    progress: bool = False,
    **settings: Unpack[TrainSettings],
) -> TrainedModel:
    """Train a calibrated model on labeled sequences, alignments or genomes, as ``seqray train`` does.

    Parameters
    ----------
    data
        The path of a table, or several; a pandas frame; a mapping of class to FASTA file; or a list of
        `LabeledSequence` or labeled `Alignment`. Their ``split`` is respected. None for a locator.
    out
        Model file to write, ends in ``.safetensors``; None writes none.
    columns
        How tables and frames call their columns, as in ``{"sequence": "seq", "label": "class"}``.
    metrics
        Figures measured elsewhere, for the card.
    work_dir, resume, restart_if_changed
        Where checkpoints and logs are kept, so that the same call goes on after an interruption; they are
        not kept by default. See `seqray.training.members.RunOptions`.
    threads
        Processor threads; torch's own choice where None.
    callbacks
        Callbacks of Lightning, called in the training of each network, one after the other.
    progress
        Show a bar.
    **settings
        ``config`` is a `RunConfig` or the path of a YAML file, ``like`` a model whose settings are taken;
        without both the data choose the settings. ``set`` overrides single ones, as in
        ``{"trainer.max_epochs": 10}``. ``seed``, ``members``, ``device``, ``truncate``, ``teacher``, ``init``
        and ``backbone`` are the options of the command; so are ``genome``, ``sites``, ``genes``, ``species``,
        ``sheet``, ``site_class``, ``hold_out`` and ``fold``, for a locator.

    Returns
    -------
    TrainedModel
        For `predict`, `scan` and `explain`. Its card holds the settings and the figures, also those of the
        baseline: ``card.training["floor"]``.

    Warns
    -----
    UserWarning
        For what speaks against the data, such as copies with several labels, and against the figures: few or
        related held-out sequences, and networks that add nothing to a linear baseline.

    Examples
    --------
    >>> import seqray
    >>> texts = ["ACGT" * 5 + "ACGT"[i % 4] * (i + 1) for i in range(40)]
    >>> data = [seqray.LabeledSequence(text, ("no", "yes")[i % 2], str(i)) for i, text in enumerate(texts)]
    >>> model = seqray.train(data, set={"trainer.max_epochs": 1}, members=1, device="cpu", threads=1)
    >>> model.card.classes
    ('no', 'yes')
    """

    def note(line: str) -> None:
        if line.startswith(CAUTION):
            warnings.warn(line, stacklevel=6)

    plan = plan_training(model_name(str(out or "model")), labeled_files(data, columns), settings, note=note)
    with temporary_folder() as folder, restored_state(threads), step_bar(progress) as report:
        path = Path(out or folder / f"model{SUFFIX}")
        run = RunOptions(
            Path(work_dir or folder / "work"),
            resume,
            restart_if_changed,
            report,
            threads,
            callbacks=tuple(callbacks),
            note=warnings.warn,
        )
        plan.train(out=path, run=run, metrics=metrics)
        model = load_model(path)
    for line in card_cautions(model.card):
        warnings.warn(CAUTION + line, stacklevel=3)
    return model


@as_guest
def evaluate(
    model: Model,
    sequences: Any,
    labels: Sequence[str] | None = None,
    *,
    columns: Columns | None = None,
    groups: Sequence[object] | None = None,
    threshold: float | None = None,
    prior: float | None = None,
    context: str | None = "auto",
    truncate: Truncation | None = None,
    split: str | None = None,
    against: Model | pd.DataFrame | None = None,
    train: Any = None,
    baseline: bool = False,
    bootstrap: int = INTERVAL_DRAWS,
    seed: int = 0,
    device: str | None = None,
) -> pd.DataFrame:
    """Measure a model on sequences of known class, as ``seqray evaluate`` does.

    Parameters
    ----------
    model, context, truncate, device
        As for `predict`.
    sequences, labels
        Sequences as for `predict`, and the (N,) class of each; without labels, labeled data as for `train`.
    columns
        As for `train`.
    groups
        (N,) values that relatives share, drawn together for the intervals; by default the column ``group`` of
        labeled data, else sequences that share words are relatives.
    threshold
        Of the positive class; None for the model's.
    prior
        Share of the positive class for which the probabilities are re-weighted.
    split
        Part of labeled data that is measured: by default ``test`` where they name one, else ``all``.
    against
        Another model, or a frame of predictions with a row for each record measured (column ``id``) and the
        columns ``p_<class>``: it is measured on the same records, and compared with the model.
    train
        Labeled data that the model was trained on, or a pair of sequences and labels: baselines that learn
        from them, or from their part ``train``, are measured (`seqray.evaluation.floor.floor_answers`).
    baseline
        Measure these also without ``train``: on the part of that name, or else by cross-validation.
    bootstrap, seed
        Samples for the intervals, 0 for none, and the seed of these and of the folds.

    Returns
    -------
    pandas.DataFrame
        A row per figure: ``class``, ``metric``, ``value``, its interval and more, see docs/formats.md. Its
        ``attrs`` hold ``findings``: those of `predict`, and notes on the figures, as of records that training
        used. Those that begin with ``caution:`` are warnings, too.

    Examples
    --------
    >>> import seqray
    >>> figures = seqray.evaluate("ecoli-promoter", {"a": "A" * 81, "c": "C" * 81}, ["background"] * 2)
    >>> figures.set_index("metric").value["accuracy"]
    np.float64(1.0)
    """
    loaded = opened(model, device=device).with_truncation(truncate)
    card = loaded.card
    require_number(threshold, "threshold")
    data = _labeled(loaded, sequences, labels, columns)
    examples, rest, part = choose_split(data, split)
    keys, grouping = group_keys(examples, loaded.alphabet)
    if groups is not None:
        key_of = dict(zip(map(id, data), _as_many(groups, "groups", data), strict=True))
        keys, grouping = [key_of[id(one)] for one in examples], ""
    scores, check, told = judge_examples(loaded, examples, context, prior=prior)
    findings = [*warned(check.lines()), *told]
    limit = card.threshold if threshold is None else threshold
    names = (card.classes, card.positive)
    answers = [answers_from_probabilities("model", "the model evaluated", scores, *names, limit)]
    known = list(seen_in_training(card, data, part, examples))
    if isinstance(against, pd.DataFrame):
        answers.append(_answers_beside(against, [one.id for one in examples], card))
    elif against is not None:
        other = opened(against, device=device).with_truncation(truncate)
        if set(other.card.classes) != set(card.classes):
            what = f"the model to compare with distinguishes {', '.join(other.card.classes)}"
            raise InputError(what, remedy=f"give one of {', '.join(card.classes)}")
        known += [f"against: {note}" for note in seen_in_training(other.card, data, part, examples)]
        own = context if other.card.model.contexts else "auto"
        scores, check, _ = judge_examples(other, examples, own, prior=prior)
        warned(check.lines())
        about = (other.card.classes, other.card.positive, other.card.threshold)
        beside = answers_from_probabilities("against", "predictions", scores, *about)
        answers.append(beside.reordered(other.card.classes, card.classes))
    known_data, known_labels = train if isinstance(train, tuple) else (train, None)
    if train is not None:
        rest = [e for e in _labeled(loaded, known_data, known_labels, columns) if e.split in (None, "train")]
    if baseline or train is not None:
        own = list(range(len(examples))) if keys is None else keys
        answers += floor_answers(examples, rest, *names, loaded.alphabet, own, seed=seed)
    records = Records(*names, label_indices([one.label or "" for one in examples], card.classes), keys)
    how = {"draws": bootstrap, "seed": seed, "split": part, "grouping": grouping}
    evaluation = evaluate_examples(examples, rest, records, answers, loaded.alphabet, **how)
    frame = pd.DataFrame([figure_row(evaluation.split, figure) for figure in evaluation.figures])
    notes = warned([*(CAUTION + note for note in known), *evaluation.notes])
    frame.attrs["findings"] = [*findings, *notes]
    return frame


def _answers_beside(predictions: pd.DataFrame, ids: Sequence[str], card: Card) -> Answers:
    """Calls of predictions by the card's classes: of the column ``label`` where there is one."""
    columns = [probability_column(name) for name in card.classes]
    missing = [name for name in ("id", *columns) if name not in predictions]
    if missing:
        remedy = f"give predictions with the columns {', '.join(('id', *columns))}"
        raise InputError(f"the predictions to compare with have no column '{missing[0]}'", remedy=remedy)
    by_id = predictions.astype({"id": str}).drop_duplicates("id").set_index("id")
    if unknown := [name for name in ids if name not in by_id.index]:
        raise InputError(f"the predictions to compare with have no row of '{unknown[0]}'")
    rows = by_id.loc[list(ids)]
    scores = rows[columns].to_numpy(dtype=np.float64)
    check_probabilities(scores, len(ids), len(columns), ids)
    answers = answers_from_probabilities("against", "predictions", scores, card.classes, card.positive)
    return replace(answers, calls=label_indices(rows["label"], card.classes)) if "label" in rows else answers


def _labeled(model: TrainedModel, sequences: Any, labels: Any, columns: Columns | None) -> list[Any]:
    """Sequences or alignments with their labels."""
    kind, alphabet = kind_of(model.card), model.alphabet
    if labels is None:
        return list(kind.read_labeled(labeled_files(sequences, columns), alphabet))
    records = list(kind.convert(sequences, alphabet, None, columns))
    return [
        LabeledSequence(one.sequence, label, one.id)
        if isinstance(one, SequenceRecord)
        else replace(one, label=label)
        for one, label in zip(records, _as_many(labels, "labels", records), strict=True)
    ]


def _as_many(values: Iterable[Any], name: str, records: Sequence[Any]) -> list[Any]:
    values = list(values)
    if len(values) != len(records):
        what = f"{name}: {len(values)} for {counted(len(records), 'record')}"
        raise InputError(what, remedy="give one each")
    return values


@as_guest
def audit(
    data: Any,
    alphabet: Alphabet | str | None = None,
    *,
    columns: Columns | None = None,
    baselines: bool = True,
    seed: int = 0,
) -> Audit:
    """Find what would mislead a model trained on these data, as ``seqray audit`` does.

    Parameters
    ----------
    data, columns
        As for `train`.
    alphabet
        ``dna``, ``rna`` or ``protein``; None for what the letters show.
    baselines
        Whether to fit the linear baselines, the slowest part.
    seed
        Of folds, samples and resamples.

    Returns
    -------
    Audit
        Its ``findings`` say ``what``, the ``effect`` and the ``remedy``, the worst first.

    Examples
    --------
    >>> import pandas as pd, seqray
    >>> rows = [("ACGTTGCAAC", "a", "train"), ("TTGGCCATGC", "b", "train"), ("ACGTTGCAAC", "a", "test")]
    >>> found = seqray.audit(pd.DataFrame(rows, columns=["sequence", "label", "split"]), baselines=False)
    >>> [finding.what for finding in found.findings if finding.kind == "copies_across"]
    ['exact copies across the split: 1 of 1 (100 %) of test also in train']
    """
    files, letters = labeled_files(data, columns), list[str]()
    skipped: list[SkippedRecord] = []
    examples, known = read_sequence_examples(files, alphabet, letters.append, skipped.append)
    in_order = bool(files.examples) or len(files.tables) == 1
    how = {"in_file_order": in_order, "baselines": baselines, "seed": seed, "skipped": len(skipped)}
    return find_faults(examples, known, letters, **how)


@as_guest
def split(
    data: Any,
    alphabet: Alphabet | str | None = None,
    *,
    columns: Columns | None = None,
    identity: float = RELATION.identity,
    word: int | None = None,
    both_strands: bool = RELATION.both_strands,
    group_by: Sequence[str] = (),
    positions: str | None = None,
    block: int = BLOCK,
    shares: tuple[float, float, float] = SPLIT.shares,
    folds: int = SPLIT.folds,
    keep: Sequence[Literal["train", "validation", "test"]] = (),
    relatives: Literal["drop", "join"] = SPLIT.relatives,
    seed: int = SPLIT.seed,
) -> pd.DataFrame:
    """Divide labeled sequences so that relatives stay together, as ``seqray split`` does.

    Parameters
    ----------
    data, columns, alphabet
        As for `audit`.
    identity, word, both_strands
        Related are sequences of this identity or more, and those that share so many letters in a row; 0 turns
        either off. A ``word`` of None is that of ``seqray split``.
    group_by, positions, block
        Names of columns whose values relatives share; ``id`` or two columns ``contig,position`` for neighbors
        in a genome, and how many letters of it stay together.
    shares, folds
        Of train, validation and test; or so many folds.
    keep, relatives
        Parts to leave as they are, and whether others that are related to them are dropped, or join them.
    seed
        Of the division.

    Returns
    -------
    pandas.DataFrame
        A row per example, with its ``split`` and ``group``, and ``fold`` where asked; of a frame with its
        index and its other columns. Its ``attrs`` hold ``proof``: how similar the parts are.

    Examples
    --------
    >>> import seqray
    >>> data = [seqray.LabeledSequence("ACGT" * 20, "a", str(i)) for i in range(3)]
    >>> data += [seqray.LabeledSequence(2 * c * 20, "b", c) for c in "ACGT"]
    >>> seqray.split(data, shares=(0.5, 0, 0.5))["split"].iloc[:3].nunique()
    1
    """
    group_by = listed(group_by)
    named = [name for name in (*group_by, *(positions or "").split(",")) if name and name != "id"]
    own = ("label", "group", "split", "context", "subclass")
    files = labeled_files(data, columns, [name for name in named if name.lower() not in own])
    examples, known = read_sequence_examples(files, alphabet)
    cells = {name: [getattr(one, name) or "" for one in examples] for name in own} | dict(files.keep)
    sequences = [one.sequence for one in examples]
    word = word_length(sequences, known) if word is None else word
    relation = RelationOptions(identity, word, both_strands)
    division = SplitOptions(shares, folds, listed(keep), relatives, seed)
    others = named_relations(examples, cells, group_by, positions, block)
    related = find_relatives(sequences, known, relation, others)
    divided = split_data(examples, related, known, division, relation)
    rows = [
        replace(one, split=part, group=str(int(group) + 1))
        for one, part, group in zip(examples, divided.split, divided.groups, strict=True)
    ]
    frame = labeled_frame(rows)
    if folds:
        frame["fold"] = divided.fold
    if isinstance(data, pd.DataFrame):
        taken = {*(columns or {}).values(), *map(str.lower, frame.columns)}
        others = [name for name in data if name not in taken and str(name).lower() not in taken]
        frame = frame.set_axis(data.index).assign(**{str(name): data[name] for name in others})
    frame = frame.loc[~np.asarray(divided.dropped)]
    frame = frame if isinstance(data, pd.DataFrame) else frame.reset_index(drop=True)
    labels = [one.label for one in examples]
    lines = [line for one in divided.boundaries for line in proof_lines(one, labels, identity or 0.8)]
    frame.attrs["proof"] = [asdict(line) for line in lines]
    return frame


@as_guest
def negatives(
    positives: Any,
    recipe: str | Sequence[str] = "shuffle",
    alphabet: Alphabet | str = "dna",
    *,
    ratio: float = 1,
    seed: int = NEGATIVES.seed,
    label: str = NEGATIVES.label,
    positive: str = "promoter",
    columns: Columns | None = None,
    segments: int = NEGATIVES.segments,
    keep: int = NEGATIVES.keep,
    genome: str | None = SOURCE.genome,
    annotation: str | None = SOURCE.annotation,
    starts: str | None = SOURCE.starts,
    feature: str = SOURCE.feature,
    distance: int = SOURCE.distance,
    gc_bins: int = NEGATIVES.gc_bins,
    max_overlap: int = NEGATIVES.max_overlap,
    block: int = NEGATIVES.block,
) -> pd.DataFrame:
    """Make negatives for positives, as ``seqray negatives`` does.

    Parameters
    ----------
    positives
        Sequences as for `predict`, each with a name of its own. Of a frame with labels, or a table, which
        needs them, the rows of the label ``positive``; others are left out, with a warning.
    recipe
        Names of recipes, which ``seqray negatives --help`` describes, or ``name=share``.
    alphabet
        ``dna``, ``rna`` or ``protein``.
    ratio
        Negatives per positive.
    label, positive
        Names of both classes.
    columns
        As for `train`.
    seed, segments, keep, genome, annotation, starts, feature, distance, gc_bins, max_overlap, block
        The options of the command. ``gc_bins`` 0 matches windows in length alone.

    Returns
    -------
    pandas.DataFrame
        Positives and negatives: ``sequence``, ``label``, ``id``, ``group``, ``subclass``, ... Relatives share
        a group. Its ``attrs`` hold what a model learns from each recipe, as ``teaches``.

    Examples
    --------
    >>> import seqray
    >>> seqray.negatives({"a": "ACGTACGTTTGACC", "b": "GGAGCCATTACTGT"}).label.tolist()
    ['promoter', 'promoter', 'background', 'background']
    """
    if genome is not None and not is_path(genome):
        raise ConfigError("'genome' is no path", remedy="write the genome to a FASTA or GenBank file")
    letters = alphabet_of(alphabet)
    mix = parse_mix(listed(recipe))
    require_number(ratio, "ratio")
    require(label != positive, "label", "must not be that of the positives")
    others = Counter[str]()  # labels of rows that are left out
    if is_path(positives):
        examples = positives_in(positives, positive, letters, others, columns=columns)
    elif isinstance(positives, pd.DataFrame) and "label" in {
        *(columns or ()),
        *map(str.lower, map(str, positives)),
    }:
        rows, _ = read_sequence_examples(labeled_files(positives, columns), letters)
        examples = positives_among(rows, positive, others, "the frame")
    else:
        records = as_records(positives, letters, columns=columns)
        examples = [LabeledSequence(one.sequence, positive, one.id) for one in records]
    source = GenomeSource(genome, annotation, starts, feature, distance)
    context, _ = read_genome_context(source, letters, mix, warnings.warn)
    share = Fraction(str(ratio))
    options = NegativeOptions(mix, share, seed, label, segments, keep, gc_bins, max_overlap, block)
    made = make_negatives(examples, options, letters, context)
    for line in cautions(made, others):
        warnings.warn(CAUTION + line, stacklevel=3)
    frame = labeled_frame([*made.positives, *made.negatives])
    frame.attrs["teaches"] = {name: RECIPES[name].teaches for name in mix}
    return frame


def labeled_frame(examples: Sequence[LabeledSequence]) -> pd.DataFrame:
    """A row per example, with the columns of a labeled table."""
    columns = ("sequence", "label", "id", "group", "split", "context", "subclass")
    rows = [[getattr(one, name) for name in columns] for one in examples]
    return pd.DataFrame(rows, columns=list(columns))
