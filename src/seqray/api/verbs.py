"""The verbs as functions: a model and sequences in any form in, a pandas frame out."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import pandas as pd
from tqdm.auto import tqdm

from seqray.api.frames import (
    call_frame,
    call_stretches,
    distinct_records,
    explanation_frame,
    gene_source,
    listed_calls,
    prediction_frame,
)
from seqray.calibration.signature import KmerCounter, signature_of
from seqray.core.alphabet import DNA, Alphabet
from seqray.core.errors import ConfigError, OnProgress, require, require_number
from seqray.core.host import as_guest
from seqray.core.records import Region, SequenceRecord
from seqray.core.results import Prediction, SkippedRecord
from seqray.core.text import Truncation, counted
from seqray.explanations.calls import explain_calls, extract_call_windows
from seqray.explanations.methods import method_cautions
from seqray.explanations.options import MethodSettings
from seqray.explanations.sequences import explain_records
from seqray.genome.genes import Annotation
from seqray.inference.engines import Engine, with_engine
from seqray.inference.origin import CAUTION, FileCheck, choose_locator, recognize_context
from seqray.inference.sequences import BatchSize, Dtype, PredictOptions, checked_records, sequence_flags
from seqray.io.tables import Columns
from seqray.kinds.kinds import kind_of
from seqray.kinds.objects import as_records
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.models.batches import torch_device
from seqray.scanning.gene_starts import gene_rows, gene_starts
from seqray.scanning.options import ONLY_FOR, ScanCallbacks, ScanOptions, other_kind
from seqray.scanning.scan import scan_records

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

Model: TypeAlias = "str | Path | TrainedModel | ClassifierMixin"  # a fitted `SequenceClassifier`
WAIT = 2  # seconds before progress is shown


class ScanSettings(TypedDict, total=False):
    """Keywords of `scan`, see `ScanOptions`."""

    stride: int | None
    prefilter: Literal["auto", "none"]
    strand: Literal["both", "plus", "minus"]
    threshold: float | None
    fdr: float | None
    per_kb: float | None
    precision: float | None
    trust: Literal["high", "medium"] | None
    species: str | None
    min_distance: int | None
    margin: float
    circular: bool
    circular_ids: tuple[str, ...]
    max_ambiguous: float
    skip_soft_masked: bool
    regions: tuple[Region, ...] | None
    null_mb: float | None
    seed: int
    piece: int


class ExplainSettings(TypedDict, total=False):
    """Keywords of `explain`, see `ExplainOptions`; ``rows`` is for alignments, see `AlignmentOptions`."""

    target: str | None
    seed: int
    settings: MethodSettings
    members: Literal["mean", "each"]
    shuffles: int
    effects: bool
    rows: int | None


@as_guest
def predict(
    model: Model,
    sequences: Any,
    *,
    threshold: float | None = None,
    prior: float | None = None,
    coverage: float | None = None,
    context: str | None = "auto",
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
    device: str | None = None,
    engine: Engine = "torch",
    truncate: Truncation | None = None,
    columns: Columns | None = None,
    skip_unusable: bool = False,
    progress: bool = False,
) -> pd.DataFrame:
    """Classify each sequence or alignment, as ``seqray predict`` does.

    Parameters
    ----------
    model
        Name of a shipped model, path of a file, what `load_model` gave, or a fitted `SequenceClassifier`.
    sequences
        Strings, Biopython or pysam records, a Series, a mapping, a path: see `as_records`. For a model of
        alignments, alignments: see `as_alignments`.
    threshold, prior, coverage, batch_size, dtype, device
        As in `seqray.inference.sequences.PredictOptions`.
    context
        What the sequences are, such as their species, for models that know contexts; ``auto`` for the one
        that the first sequences are like, if any, see `seqray.inference.origin.recognize_context`.
    engine
        What computes, see `seqray.inference.engines.with_engine`.
    truncate
        What is read of sequences longer than the model reads: ``ends``, a half each, or the ``start``;
        ``none`` refuses them. None for the rule of the model.
    columns
        How a table of sequences, or a pandas frame, calls its columns: ``{"sequence": "seq", "id": "name"}``.
    skip_unusable
        Leave out what the model can't read, with a warning: records that are too long or too short, that have
        letters that it does not know, or none. Else the first one is an error.
    progress
        Show a bar of progress if it takes longer than two seconds.

    Returns
    -------
    pandas.DataFrame
        ``id``, ``length``, ``label``, ``p_<class>`` for each class, ``flags`` (``.`` for none) and, with a
        coverage, ``set``; a row per sequence, in their order. Its ``attrs`` hold the ``threshold``
        in force (None with more than two classes), the ``context`` in which they were read, the reason why
        each of the ``skipped`` records was, and ``findings``: lines on what all sequences together are like.
        Those that speak against the probabilities begin with ``caution:``, and are warnings, too.

    Raises
    ------
    InputError, ConfigError, ModelFileError
        For sequences, settings or a model that can't be used, as all functions here do.

    Notes
    -----
    The command skips a record without letters, and this function raises an error. Names may repeat, unless
    they are the ids of a file. An empty list gives an empty frame.

    Examples
    --------
    >>> import seqray
    >>> frame = seqray.predict("ecoli-promoter", "data/example/promoters.fa")
    >>> frame[["id", "length", "label"]].head(2)
           id  length     label
    0   lacP1      81  promoter
    1  lacUV5      81  promoter
    >>> seqray.predict("ecoli-promoter", {"poly-A": "A" * 81}).label.tolist()
    ['background']
    """
    loaded = opened(model, context, device, engine, dtype).with_truncation(truncate)
    options = PredictOptions(
        batch_size=batch_size, dtype=dtype, threshold=threshold, prior=prior, coverage=coverage
    )
    kind = kind_of(loaded.card)
    named = loaded.context
    skipped: list[SkippedRecord] = []
    records = _usable(loaded, sequences, skipped if skip_unusable else None, columns)
    loaded, records = _in_context(loaded, records, context)
    check = FileCheck(loaded, coverage, prior, recognized=loaded.context != named)
    predictions: list[Prediction] = []
    for batch, answers in _bar(kind.predict(loaded, records, options, ""), progress, unit="batches"):
        check.see(batch, answers)
        predictions += answers
    frame = prediction_frame(predictions, loaded.card.classes, coverage is not None)
    card = loaded.card
    frame.attrs = {
        "threshold": (card.threshold if threshold is None else threshold) if len(card.classes) == 2 else None,
        "context": loaded.context,
        "skipped": _warned_of(skipped),
        "findings": warned(check.lines()),
    }
    return frame


@as_guest
def scan(
    model: Model,
    sequences: Any,
    *,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
    device: str | None = None,
    engine: Engine = "torch",
    context: str | None = "auto",
    strict: bool = False,
    skip_unusable: bool = False,
    genes: str | Path | Annotation | None = "auto",
    codon_table: int | None = None,
    progress: bool = False,
    **options: Unpack[ScanSettings],
) -> pd.DataFrame:
    """Find sites along sequences of any length, on both strands, as ``seqray scan`` does.

    Parameters
    ----------
    model, sequences, context, batch_size, device, engine, progress
        As for `predict`; each sequence needs a name of its own. The model ``auto`` is the shipped one for
        the kingdom whose ribosomal RNA the sequences have.
    dtype
        ``bf16`` is faster and less exact than ``fp32``.
    strict
        Raise for a sequence shorter than the model's window; else it is left out, with a warning.
    skip_unusable
        Leave out sequences without letters, or with letters that the model does not know, too.
    genes, codon_table
        For a model for genomes: a GenBank or GFF3 file, what `seqray.genome.find.read_genes` gave,
        ``predict``, or None or ``none`` for no genes. ``auto`` takes those of a GenBank file or of
        Biopython records; else it predicts them where the extra ``genes`` is installed and sequences are no
        longer than a bacterium's, and else warns. The codon table is that of predicted genes.
    **options
        Of `ScanOptions`: ``threshold``, ``fdr``, ``strand``, ``stride``, ``circular``, ``null_mb``, ...

    Returns
    -------
    pandas.DataFrame
        ``id``, ``contig``, ``start``, ``end``, ``strand``, ``site``, ``score``, ``label``: 0-based,
        half-open, on the plus strand of the contig; of a model for genomes also the columns that
        docs/formats.md lists. Its method ``genes()`` gives a row a gene: the best start, or why there is
        none. Its ``attrs`` hold the ``threshold`` in force, the ``expected_false_calls`` and
        ``expected_precision`` (None where not estimated), ``letters``, ``lengths`` of the contigs with calls,
        the ``context`` in which they were read, number and source of the ``genes``, the ``circular`` ones
        with calls, the reason why each of the ``skipped`` was, and ``findings`` as `predict` gives them.

    Examples
    --------
    >>> import seqray
    >>> calls = seqray.scan("ecoli-promoter", "data/example/regions.fa", null_mb=0)
    >>> list(calls.columns)
    ['id', 'contig', 'start', 'end', 'strand', 'site', 'score', 'label']
    >>> bool((calls.score >= calls.attrs["threshold"]).all())
    True
    """
    settings = ScanOptions(**_checked(ScanOptions, options))
    skipped: list[SkippedRecord] = []

    def read(alphabet: Alphabet) -> Iterable[SequenceRecord]:
        on_skip = skipped.append if skip_unusable else None
        soft_masks = settings.skip_soft_masked
        return distinct_records(as_records(sequences, alphabet, soft_masks=soft_masks, on_skip=on_skip))

    records, chosen = None, []
    if isinstance(model, str) and model == "auto":
        records = list(read(DNA))
        model, why = choose_locator(records)
        chosen.append(why)
    loaded = opened(model, context, device, engine, dtype)
    given = options | ({} if isinstance(genes, str) and genes == "auto" else {"genes": genes})
    given |= {} if codon_table is None else {"codon_table": codon_table}
    other, said = other_kind(loaded.card)
    for name in given:
        if ONLY_FOR.get(name) == other:
            raise ConfigError(f"'{name}' {said}")
    named = loaded.context
    loaded, records = _in_context(loaded, read(loaded.alphabet) if records is None else records, context)
    source = None
    if loaded.is_locator:
        records = list(records)
        introns = loaded.card.locator.introns
        source = gene_source(genes, codon_table, records, sequences, settings.is_circular, introns)
    with step_bar(progress, "letters") as report:
        result = scan_records(
            loaded,
            records,
            settings,
            ScanCallbacks(on_skip=None if strict else skipped.append, on_progress=report),
            batch_size=batch_size,
            dtype=dtype,
            genes=source,
            recognized=loaded.context != named,
        )
    frame = call_frame(result.calls, result.context_columns)
    frame._gene_rows = list(gene_rows(gene_starts(result)))
    null = None if result.from_positions else result.false_calls
    frame.attrs = {
        "threshold": result.threshold,
        "expected_false_calls": None if null is None else null.expected,
        "expected_precision": result.expected_precision,
        "letters": result.letters,
        "lengths": result.calls.contigs,
        "context": loaded.context,
        "genes": None if result.genes is None else f"{result.genes.count}, {result.genes.source}",
        "circular": sorted(result.calls.circular),
        "skipped": _warned_of(skipped),
        "findings": warned([*chosen, *result.findings]),
    }
    return frame


@as_guest
def explain(
    model: Model,
    sequences: Any,
    method: str | Sequence[str] | None = None,
    *,
    top: int | None = None,
    context: str | None = "auto",
    device: str | None = None,
    calls: pd.DataFrame | str | Path | None = None,
    genes: str | Path | Annotation | None = "auto",
    circular: bool | Collection[str] | None = None,
    truncate: Truncation | None = None,
    columns: Columns | None = None,
    skip_unusable: bool = False,
    progress: bool = False,
    **options: Unpack[ExplainSettings],
) -> pd.DataFrame:
    """Rank the letters, or columns, that each call rests on, as ``seqray explain`` does.

    Parameters
    ----------
    model, sequences, context, device, truncate, columns, skip_unusable, progress
        As for `predict`; a model for genomes and ``calls`` leave nothing out.
    method
        Name of a method, or several, see `seqray.explanations.methods.METHODS`, and for alignments
        `seqray.explanations.methods.OF_ALIGNMENTS`. None is ``rollout``, for alignments ``occlusion``, and
        for a model for genomes ``input-x-gradient``.
    top
        Keep that many letters or columns of each only, the best in rank.
    calls
        Explain these calls instead of the sequences: what `scan` gave for the same sequences, or GFF3 that
        ``seqray scan`` wrote. A model for genomes explains nothing but its calls.
    genes
        For a model for genomes: as in `scan`.
    circular
        For a model for genomes: whether all sequences are circular, or the names of those that are, beside
        those that their file marks so. None takes what ``calls`` say: a frame of `scan` in its ``attrs``,
        GFF3 in lines with ``Is_circular``.
    **options
        Of `ExplainOptions`: ``target``, ``shuffles``, ``members``, ``seed``, ``effects``; for a model of
        alignments of `AlignmentOptions`: ``target``, ``rows``, ``seed``.

    Returns
    -------
    pandas.DataFrame
        A row per letter with ``record``, ``position``, ``base``, ``method``, ``score``, ``rank``,
        ``ism_delta``, ``p`` and more, or per column of an alignment with ``column``, ``query_position``,
        ``letter``, ``score``, ``rank`` and more, see docs/formats.md. Its ``attrs`` hold the ``flags`` of
        sequences that have some, as `predict` gives them, by name, the ``skipped`` ones, and ``findings``:
        what of the model a method can't show, which are warnings, too. Arrays, attention and rows:
        `explain_records` and `seqray.explanations.alignments.explain_alignments`.

    Notes
    -----
    A ranking exists for every sequence. Whether this one beats a random one for this model and these
    sequences is what ``seqray explain`` and `seqray.explanations.sequences.check` measure.

    Examples
    --------
    >>> import seqray
    >>> letters = seqray.explain("ecoli-promoter", "data/example/promoters.fa", "ism", top=3, shuffles=0)
    >>> letters[letters.record == "lacP1"][["position", "base", "rank"]].sort_values("rank").values.tolist()
    [[49, 'A', 1], [48, 'T', 2], [53, 'T', 3]]
    """
    loaded = opened(model, context, device).with_truncation(truncate)
    require_number(top, "top", whole=True, least=1)
    kind = kind_of(loaded.card)
    methods = listed(method or kind.default_methods)
    reserved = ("methods", "attention", "pairs")  # the frame has no place for maps of attention
    chosen = kind.explain_options(methods=methods, **_checked(kind.explain_options, options, *reserved))
    flags: dict[str, str] = {}
    skipped: list[SkippedRecord] = []
    if loaded.is_locator:
        explained = explain_calls(loaded, call_stretches(loaded, sequences, calls, genes, circular), chosen)
    elif calls is not None:
        loaded.check_reads_sequences()
        loaded, contigs = _in_context(loaded, as_records(sequences, loaded.alphabet), context)
        source = "" if isinstance(calls, pd.DataFrame) else str(calls)
        how = (listed_calls(calls)[0], loaded.alphabet, loaded.card.window, source)
        windows, places = extract_call_windows(distinct_records(contigs), *how)
        explained = explain_records(loaded, windows, chosen, places=places)
    else:
        records = _usable(loaded, sequences, skipped if skip_unusable else None, columns)
        loaded, records = _in_context(loaded, records, context)

        def noted() -> Iterator[Any]:
            for record in records:
                yield record  # whoever takes it checks it before its flags are asked for
                if not isinstance(record, SequenceRecord):
                    continue
                if reasons := sequence_flags(loaded, record.sequence):
                    flags[record.id] = ",".join(reasons)

        explained = kind.explain(loaded, noted(), chosen)
    explained = _bar(explained, progress, unit="explanations")
    rows = (row for one in explained for row in kind.explanation_rows(one, top))
    frame = explanation_frame(rows, kind.explanation_columns)
    findings = warned(CAUTION + text for text in method_cautions(loaded, methods))
    frame.attrs |= {"flags": flags, "skipped": _warned_of(skipped), "findings": findings}
    frame.attrs["alphabet"] = loaded.alphabet.name
    if loaded.is_locator:
        frame.attrs["site"] = loaded.locators[0].radius
    return frame


@as_guest
def origin(model: Model, sequences: Any) -> pd.DataFrame:
    """Report which training data many sequences resemble together, by their 4-mer frequencies.

    ``seqray predict`` and ``seqray scan`` use the same measure for warnings, see
    docs/concepts/probabilities.md.

    Parameters
    ----------
    model, sequences
        As for `predict`; sequences may be of any length, such as whole genomes.

    Returns
    -------
    pandas.DataFrame
        ``context`` (such as a species; None for a model without), ``distance`` and ``foreign`` (see
        `seqray.calibration.signature.ContextDistance`), the nearest first. Empty if the sequences have fewer
        than 10,000 words, or if the model has no signature.

    Examples
    --------
    Random letters are not like E. coli:

    >>> import seqray
    >>> seqray.origin("ecoli-promoter", "data/example/construct.fa").round(2)
      context  distance  foreign
    0    None       0.1     True
    """
    loaded = opened(model)
    loaded.check_reads_sequences()
    signature = signature_of(loaded.card)
    words = KmerCounter(loaded.alphabet)
    for record in as_records(sequences, loaded.alphabet):
        words.add(record.sequence)
    found = signature.compare(words.counts) if signature else []
    columns = ("context", "distance", "foreign")
    rows = [[one.context, one.distance, one.is_foreign] for one in found]
    return pd.DataFrame(rows, columns=list(columns))


def listed(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """One name, several, or none."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def _bar(items: Any, shown: bool, **options: Any) -> Any:
    return tqdm(items, disable=not shown, delay=WAIT, **options)


@contextmanager
def step_bar(shown: bool, unit: str = "steps") -> Iterator[OnProgress]:
    """A bar that is moved by the function that is yielded."""
    with _bar(None, shown, unit=unit, unit_scale=True) as bar:

        def report(done: int, total: int | None, phase: str) -> None:
            bar.total, bar.desc = total, f"{phase}: "
            bar.update(done - bar.n)

        yield report


def opened(
    model: Any,
    context: str | None = None,
    device: str | None = None,
    engine: Engine = "torch",
    dtype: Dtype = "fp32",
) -> TrainedModel:
    """The model of a name, a path, or a fitted classifier, as it is used."""
    model = getattr(model, "model_", model)
    require(context is None or isinstance(context, str), "context", "must be a name, 'auto' or 'none'")
    loaded = model if isinstance(model, TrainedModel) else load_model(model)
    if device is not None:
        loaded.to(torch_device(device))
    if context not in (None, "none", "auto"):
        loaded = loaded.with_context(context)
    return with_engine(loaded, engine, dtype)


def _usable(
    model: TrainedModel, sequences: Any, skipped: list[SkippedRecord] | None, columns: Columns | None
) -> Iterator[Any]:
    """The records of any object; ``skipped`` receives those that the model can't read, else an error."""
    on_skip = None if skipped is None else skipped.append
    records = kind_of(model.card).convert(sequences, model.alphabet, on_skip, columns)
    reads_each = on_skip is not None and model.card.model.reads_sequences
    return checked_records(records, model, "", on_skip) if reads_each else records


def _in_context(
    model: TrainedModel, records: Iterable[Any], context: str | None
) -> tuple[TrainedModel, Iterable[Any]]:
    """The model for the context that the records are of, where it is left to them, and the records."""
    return recognize_context(model, records) if context == "auto" else (model, records)


def warned(findings: Iterable[str]) -> list[str]:
    """Warn of each caution among findings, and list all."""
    lines = list(findings)
    for line in lines:
        if line.startswith(CAUTION):
            warnings.warn(line, stacklevel=4)
    return lines


def _warned_of(skipped: Sequence[SkippedRecord]) -> dict[str, str]:
    """Warn of records that were skipped, and give the reason of each."""
    if skipped:
        first = "; ".join(f"'{record.id}' ({record.reason})" for record in skipped[:3])
        warnings.warn(f"skipped {counted(len(skipped), 'sequence')}: {first}", stacklevel=4)
    return {record.id: record.reason for record in skipped}


def _checked(options: Any, given: Mapping[str, Any], *reserved: str) -> Mapping[str, Any]:
    """Refuse the name of a setting that doesn't exist, as Python does for an argument."""
    names = [field.name for field in fields(options) if field.name not in reserved]
    for name in given:
        if name not in names:
            raise TypeError(f"unknown setting '{name}'; known are {', '.join(names)}")
    return given
