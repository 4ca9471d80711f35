"""An estimator for scikit-learn."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
import pandas as pd
import torch
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from seqray.api.verbs import step_bar
from seqray.core.alphabet import ALPHABETS, ANY_LETTERS, Alphabet, infer_alphabet
from seqray.core.arrays import log_probabilities
from seqray.core.errors import ConfigError, fields_named, require, require_number
from seqray.core.host import OneAtATime, as_guest
from seqray.core.labels import known_positive
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.run_config import RunConfig, change_settings, load_run_config
from seqray.inference.sequences import checked_records, score_ragged
from seqray.io.files import temporary_folder
from seqray.kinds.kinds import kind_of
from seqray.kinds.objects import as_records
from seqray.modelfile.file import load_model, save_model
from seqray.modelfile.header import SUFFIX, available_models
from seqray.modelfile.model import TrainedModel
from seqray.models.batches import torch_device, trainer_device
from seqray.training.data_facts import data_cautions, measure_data
from seqray.training.final_card import card_cautions
from seqray.training.fit import train, train_best
from seqray.training.members import RunOptions
from seqray.training.plan import settings_of
from seqray.training.settings_from_data import alternatives_of, choose_settings

# --- How the parameters of `seqray.SequenceClassifier` become the settings of a training

NAME = "sequence-classifier"  # of models without settings
_SECTIONS = {
    "model": ("alphabet", "d_model", "layers", "heads", "dropout"),
    "data": ("window", "validation"),
    "optimizer": ("learning_rate", "weight_decay", "batch_size"),
}
_PARAMETERS = {
    "data.positive": "'positive'",
    "truncate": None,
    **{f"{section}.{name}": f"'{name}'" for section, names in _SECTIONS.items() for name in names},
}
"""Settings by the names of the parameters; the classifier cuts no sequences."""


def lay_parameters(parameters: Mapping[str, Any], chosen: RunConfig | None = None) -> RunConfig:
    """Lay parameters that are not None over the settings ``config``, or over those chosen from the data.

    ConfigError is raised for settings that are wrong, or of a model that does not read sequences.
    """
    given = {
        name: value.item() if isinstance(value, np.generic) else value  # as grids of parameters hold them
        for name, value in parameters.items()
        if value is not None
    }
    require_number(given.get("epochs"), "epochs", whole=True, least=1)
    config = parameters["config"]
    if chosen is not None:
        base = replace(chosen, name=NAME)
    elif config is None:
        base = RunConfig(name=NAME)
    elif isinstance(config, RunConfig):
        base = config
    elif str(config) in available_models():
        base = replace(settings_of(str(config)), name=str(config))
    else:
        what = "must be a RunConfig, a path, the name of a shipped model or None"
        require(isinstance(config, str | Path), "config", what)
        base = load_run_config(config)
    changes = {
        f"{section}.{name}": given[name]
        for section, names in _SECTIONS.items()
        for name in names
        if name in given
    }
    if chosen is not None and "d_model" in given:
        changes["model.d_ff"] = 2 * given["d_model"]  # as the rules have it
    if "window" in given:
        changes["model.max_length"] = max(base.model.max_length, given["window"])
    if "epochs" in given:
        changes["trainer.max_epochs"] = given["epochs"]
    changes |= {name: given[name] for name in ("members", "seed") if name in given}
    device = {f"trainer.{name}": value for name, value in trainer_device(parameters["device"]).items()}
    settings = change_settings(base, changes | device)
    if kind_of(settings).example is not LabeledSequence:
        raise ConfigError(f"'model.kind' is {settings.model.kind}", remedy="X are sequences")
    return settings


def fit_to_data(
    settings: RunConfig, records: Sequence[SequenceRecord], names: Sequence[str], positive: object
) -> RunConfig:
    """Take from the data what settings leave open: classes, flanks, and the positive class.

    ``positive`` None takes that of the settings if it is a class, else the one that its name tells, else the
    last.
    """
    data = settings.data
    if max((len(record) for record in records), default=1) <= data.window:
        data = replace(data, flank=0)  # the sequences come without flanks
    if positive is None:
        positive = data.positive if data.positive in names else known_positive(names) or names[-1]
    model = replace(settings.model, classes=len(names))
    return replace(settings, data=replace(data, positive=str(positive)), model=model)


# --- A scikit-learn classifier of sequences over the same parts as ``seqray train`` and ``seqray predict``

_TRAINING = OneAtATime()  # training seeds the random states of the whole process


@dataclass(eq=False, repr=False)
class SequenceClassifier(ClassifierMixin, BaseEstimator):
    """Transformer classifier of biological sequences with calibrated probabilities.

    ``X`` is one-dimensional: strings, Biopython records, pysam reads or a pandas Series of them.

    Parameters
    ----------
    config
        Settings of the run: a `RunConfig`, the path of a YAML file, the name of a shipped model whose
        settings are taken, or None to choose them from X and y by the rules of ``seqray train``, which
        trains one more network where the data must decide. All parameters below override it where they are
        not None.
    alphabet
        ``dna``, ``rna`` or ``protein``; with ``config`` None that of the letters of X.
    window
        Longest sequence in letters.
    d_model, layers, heads, dropout
        Shape of the network, see `ModelConfig`.
    epochs
        Most passes over the training part.
    learning_rate, weight_decay, batch_size
        Of the optimizer, see `OptimizerConfig`.
    members
        Networks in the ensemble, 1 to 5.
    validation
        Share of the groups of relatives held out for early stopping and calibration.
    positive
        The class that counts as positive; that of the settings where the labels have it, else the one of two
        that its name tells (yes of yes and no, case of case and control, 1 of 0 and 1, ...), else the last.
        Of several classes with ``config`` None, the rarest that is not named as the negative one.
    threshold
        Probability of the positive class at and above which `predict` gives it. None gives the more probable
        class, as scikit-learn's other classifiers do; ``model`` the threshold of the model, as
        ``seqray predict`` does: the one with the highest Matthews correlation to expect. For two classes.
    seed
        Of weights, held-out parts and batches. The same seed and threads give the same model.
    device
        Where to train and predict: ``auto`` (a GPU where there is one), ``cpu``, ``cuda`` or ``cuda:N``.
    threads
        Processor threads; torch's own choice where None.
    verbose
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray (K,)
        Labels, sorted.
    model_ : TrainedModel
        The trained model with its card; its classes are the labels as text.

    Notes
    -----
    Relatives (copies, the other strand, one value of ``groups``) never lie on both sides of a held-out part.
    Give the same groups to the splitter of a cross-validation.

    Threads of one process train one after the other, because training seeds the random states of the process.
    Use processes to train side by side, as ``n_jobs`` of scikit-learn does by default.

    Pickles hold the model as the bytes of its model file.

    Examples
    --------
    >>> from seqray import SequenceClassifier
    >>> rng = __import__("numpy").random.default_rng(0)
    >>> X = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(80)]
    >>> y = ["site" if i % 2 else "other" for i in range(80)]
    >>> X = [x[:7] + "TATAAT" + x[13:] if label == "site" else x for x, label in zip(X, y)]
    >>> classifier = SequenceClassifier(d_model=16, layers=1, heads=2, epochs=2, device="cpu", threads=1)
    >>> classifier.fit(X, y).predict_proba(X).shape
    (80, 2)
    >>> classifier.classes_
    array(['other', 'site'], dtype='<U5')
    """

    config: str | Path | RunConfig | None = None
    _: KW_ONLY
    alphabet: Literal["dna", "rna", "protein"] | None = None
    window: int | None = None
    d_model: int | None = None
    layers: int | None = None
    heads: int | None = None
    dropout: float | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    batch_size: int | None = None
    members: int | None = None
    validation: float | None = None
    positive: Any = None
    threshold: float | Literal["model"] | None = None
    seed: int | None = None
    device: str = "auto"
    threads: int | None = None
    verbose: bool = False

    @fields_named(_PARAMETERS)
    @as_guest
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Train, calibrate and keep the model.

        Parameters
        ----------
        X
            N sequences.
        y
            (N,) labels: text or whole numbers.
        groups
            (N,) values that relatives share; None where none are known beyond copies.

        Raises
        ------
        InputError, ConfigError
            For data or settings that can't be trained on.
        ValueError
            For labels that are no classes or missing, and lengths that differ.

        Warns
        -----
        UserWarning
            For what speaks against the data or the figures, as `seqray.train` does.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        things = _one_dimensional(X)
        missing = np.flatnonzero(pd.isna(np.asarray(y, dtype=object)))
        if len(missing):  # numpy would make a class ``nan`` of them
            raise ValueError(f"label {missing[0]} is a missing value; drop missing values first")
        labels = column_or_1d(y, warn=True)
        check_consistent_length(things, labels, groups)
        check_classification_targets(labels)
        records, alphabet = self._read(things)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(records) < 2 or len(self.classes_) < 2:
            found = f"n_samples = {len(records)}, classes: {', '.join(map(str, self.classes_))}"
            raise ValueError(f"a classifier needs sequences of two classes or more, found {found}")
        names = [str(label) for label in self.classes_]
        if len(self.classes_) > 2 and self.threshold not in (None, "model"):  # `predict` would ignore it
            what = f"'threshold' is for two classes, and the labels have {len(self.classes_)}"
            raise ConfigError(what, remedy="leave it out: the most probable class is given")
        shared = [None] * len(records) if groups is None else list(groups)
        shared = [None if pd.isna(x) is True or str(x) == "" else str(x) for x in shared]  # as empty cells
        data = [
            LabeledSequence(record.sequence, names[number], record.id, group)
            for record, number, group in zip(records, numbers, shared, strict=True)
        ]
        facts = measure_data(data, alphabet) if self.config is None else None
        chosen = choose_settings(facts) if facts else None
        laid = lay_parameters(self.get_params(deep=False), chosen)
        settings = fit_to_data(laid, records, names, self.positive)
        alternatives = alternatives_of(settings, facts) if facts else []
        fit = partial(train_best, alternatives=alternatives) if alternatives else train
        with temporary_folder() as folder, restored_state(self.threads), step_bar(self.verbose) as report:
            out = folder / f"model{SUFFIX}"
            run = RunOptions(folder / "work", progress=report, threads=self.threads)
            fit(settings, data=data, out=out, run=run, classes=names)
            self.model_ = load_model(out)
        for text in (*data_cautions(data), *card_cautions(self.model_.card)):
            warnings.warn(text, stacklevel=4)  # past the context manager around this method
        return self

    def _read(self, things: Any) -> tuple[list[SequenceRecord], Alphabet]:
        """Read the sequences, and tell their alphabet by their letters unless it is set."""
        name = self.alphabet
        if self.config is not None:
            name = lay_parameters(self.get_params(deep=False)).model.alphabet
        if name is not None:
            if name not in ALPHABETS:
                raise ConfigError(f"'alphabet' is {name!r}", remedy=f"give {', '.join(ALPHABETS)}")
            return list(as_records(things, ALPHABETS[name])), ALPHABETS[name]
        records = list(as_records(things, ANY_LETTERS))
        alphabet = infer_alphabet(record.sequence for record in records)
        return [
            replace(one, sequence=alphabet.normalize(one.sequence, f"'{one.id}'")) for one in records
        ], alphabet

    @fields_named(_PARAMETERS)
    @as_guest
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return calibrated probabilities (N, K), in the order of `classes_`."""
        check_is_fitted(self)
        model = self.model_.to(torch_device(self.device))
        records = (  # those that come with the flanks of the training sequences are cut, as in a score
            replace(record, sequence=model.card.trim_flanks(record.sequence))
            for record in as_records(_one_dimensional(X), model.alphabet)
        )
        codes = [model.read_codes(record.sequence) for record in checked_records(records, model, "")]
        with _threads(self.threads):
            return score_ragged(model, codes, "auto", "fp32")

    @as_guest
    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of ``classes_[1]`` above where `predict` gives it (N,), or log-probabilities (N, K)."""
        p = log_probabilities(self.predict_proba(X))
        if len(self.classes_) > 2:
            return p
        limit, index = self._limit(), self.model_.card.positive_index
        return p[:, 1] - p[:, 0] - (logit(limit) if index == 1 else -logit(limit))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each sequence (N,)."""
        p = self.predict_proba(X)
        if len(self.classes_) > 2 or self.threshold is None:
            return self.classes_[p.argmax(axis=1)]
        index = self.model_.card.positive_index
        return self.classes_[np.where(p[:, index] >= self._limit(), index, 1 - index)]

    def _limit(self) -> float:
        limit = self.model_.card.threshold if self.threshold == "model" else self.threshold
        limit = 0.5 if limit is None else limit
        if not isinstance(limit, int | float) or not 0 < limit < 1:
            raise ConfigError(f"'threshold' is {limit!r}", remedy="give a probability, 'model' or None")
        return float(limit)

    def save(self, path: str | Path) -> None:
        """Write the model file, which every verb of ``seqray`` takes as ``--model``.

        Raises
        ------
        ModelFileError, InputError
            For a name that doesn't end in ``.safetensors``, or a file that can't be written.
        """
        check_is_fitted(self)
        save_model(path, self.model_.networks, self.model_.card, self.model_.prefilter)

    @classmethod
    def load(cls, path: str | Path, **parameters: Any) -> Self:
        """Make a fitted classifier of a model file, or of a shipped model by its name.

        The parameters are those of the class; `fit` begins anew.

        Examples
        --------
        >>> from seqray import SequenceClassifier
        >>> SequenceClassifier.load("ecoli-promoter", device="cpu").predict(["A" * 81])
        array(['background'], dtype='<U10')
        """
        classifier = cls(**parameters)
        classifier.model_ = load_model(path)
        classifier.model_.check_reads_sequences()
        classifier.classes_ = np.array(classifier.model_.card.classes)
        return classifier

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        if isinstance(state.get("model_"), TrainedModel):
            with temporary_folder() as folder:
                self.save(path := folder / f"model{SUFFIX}")
                state["model_"] = path.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("model_"), bytes):
            with temporary_folder() as folder:
                path = folder / f"model{SUFFIX}"
                path.write_bytes(state["model_"])
                state = state | {"model_": load_model(path)}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _one_dimensional(X: Any) -> Any:
    """Refuse what has columns; an estimator gets many sequences, so one string is a mistake."""
    if isinstance(X, str | bytes | Path):
        raise ValueError("one sequence or path was given; X is a list of sequences")
    ndim = getattr(X, "ndim", 1)
    if ndim != 1:
        shape = getattr(X, "shape", "")
        remedy = "give a list of sequences or one column as X['sequence']. Reshape your data"
        raise ValueError(f"X has {ndim} dimensions {shape}; {remedy}")
    return X if hasattr(X, "__len__") else list(X)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Use that many threads, then as many as before."""
    require_number(count, "threads", whole=True, least=1)
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def restored_state(threads: int | None) -> Iterator[None]:
    """Leave the random states and threads of the program as they were: training seeds them all.

    One thread at a time: two would draw from one state, and no seed would give the same model again.
    """
    with _TRAINING.entered():
        python, numpy = random.getstate(), np.random.get_state()
        try:
            with torch.random.fork_rng(), _threads(threads):
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
