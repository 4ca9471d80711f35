"""What the table of accuracy compares: sets with a test part of their own, and cross-validated ones.

Published figures are those of their papers, in most cases of the best of several methods, as cited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Published = dict[str, tuple[float, str]]
"""Measure to value and source."""

CNNPROM = "Umarov and Solovyev 2017, CNNProm"
IPTT = "iPTT(2L)-CNN, Hindawi 2021/6636350, table 3"
GUE = "best of DNABERT 1, 2 and Nucleotide Transformer on GUE, Zhou et al. 2023, table 6"
LCNN = "PromoterLCNN, Hernandez et al. 2022"
AMPLIFY = "Li et al. 2022, AMPlify"
IPROMP = (
    "iPro-MP, PMC12516880: AUROC above .9 in 18 of 23 species, a network of 86 million parameters for each"
)
FROZEN = "frozen embeddings of foundation models, Nature Communications 2025, s41467-025-65823-8, table 1"


@dataclass(frozen=True, kw_only=True)
class TestSet:
    """A set with an official test part, scored once by a shipped model.

    Attributes
    ----------
    table
        Name of the set in ``data/prepare.py``.
    model
        Name of the model, trained by ``configs/<model>.yaml`` on the table ``trained_on``.
    measures
        Which figures the table shows.
    remark
        What was published, where it is no figure to set beside ours.
    name
        What the table calls it; the name of the set by default.
    by_context
        Whether the figure is the mean over contexts (species).
    without_first
        Also score with this first letter removed where a sequence begins with it.
    """

    table: str
    model: str
    trained_on: str
    measures: tuple[str, ...]
    published: Published = field(default_factory=dict)
    remark: str = ""
    name: str = ""
    by_context: bool = False
    without_first: str = ""

    @property
    def shown(self) -> str:
        """Name in the table."""
        return self.name or self.table


@dataclass(frozen=True, kw_only=True)
class Folds:
    """A set that is cross-validated: random folds are the official protocol, grouped ones the honest one."""

    table: str
    config: str
    measures: tuple[str, ...]
    published: Published

    @property
    def shown(self) -> str:
        """Name in the table."""
        return self.table


TEST_SETS = (
    TestSet(
        table="bacteria",
        model="bacteria-promoter",
        trained_on="bacteria",
        measures=("auroc", "mcc"),
        remark=IPROMP,
        by_context=True,
    ),
    TestSet(
        table="bacteria",
        name="bacteria-fast",
        model="bacteria-promoter-fast",
        trained_on="bacteria",
        measures=("auroc", "mcc"),
        remark=IPROMP,
        by_context=True,
    ),
    TestSet(
        table="human-core-all",
        model="human-core-promoter",
        trained_on="human-core-all",
        measures=("mcc", "auroc"),
        published={"mcc": (0.709, GUE), "auroc": (0.875, FROZEN)},
    ),
    TestSet(
        table="human-core-notata",
        model="human-core-promoter",
        trained_on="human-core-all",
        measures=("mcc", "auroc"),
        published={"mcc": (0.716, GUE), "auroc": (0.896, FROZEN)},
    ),
    TestSet(
        table="human-core-tata",
        model="human-core-tata-promoter",
        trained_on="human-core-tata",
        measures=("mcc", "auroc"),
        published={"mcc": (0.782, GUE), "auroc": (0.810, FROZEN)},
    ),
    TestSet(
        table="human-300-tata",
        model="human-promoter-300",
        trained_on="human-300-tata",
        measures=("mcc", "auroc"),
        published={"mcc": (0.794, GUE), "auroc": (0.808, FROZEN)},
    ),
    TestSet(
        table="amp",
        model="antimicrobial-peptide",
        trained_on="amp",
        measures=("accuracy", "auroc"),
        published={"accuracy": (0.937, AMPLIFY), "auroc": (0.984, AMPLIFY)},
        without_first="M",
    ),
    TestSet(
        table="amp-imbalanced",
        model="antimicrobial-peptide",
        trained_on="amp",
        measures=("auprc", "precision_at_recall_80"),
        without_first="M",
    ),
)

FOLDS = (
    Folds(
        table="ecoli-cnnprom",
        config="ecoli-cnnprom",
        measures=("mcc", "auroc"),
        published={"mcc": (0.84, CNNPROM)},
    ),
    Folds(
        table="arabidopsis-tata",
        config="arabidopsis-promoter",
        measures=("mcc", "auroc"),
        published={"mcc": (0.937, IPTT)},
    ),
    Folds(
        table="arabidopsis-nontata",
        config="arabidopsis-promoter",
        measures=("mcc", "auroc"),
        published={"mcc": (0.907, IPTT)},
    ),
    Folds(
        table="mouse-tata",
        config="mouse-tata",
        measures=("mcc", "auroc"),
        published={"mcc": (0.93, CNNPROM)},
    ),
    Folds(
        table="human-nontata",
        config="human-nontata-promoter",
        measures=("auroc", "mcc"),
        published={"auroc": (0.943, FROZEN)},
    ),
    Folds(
        table="ecoli-sigma",
        config="ecoli-sigma",
        measures=("accuracy", "mcc", "macro_f1"),
        published={"accuracy": (0.886, LCNN), "mcc": (0.77, LCNN)},
    ),
)
