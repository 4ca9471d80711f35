"""A synthetic genome whose genes are known: random codons behind ribosome binding sites."""

from dataclasses import dataclass

import numpy as np
import pytest

SENSE = [a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT" if a + b + c not in ("TAA", "TAG", "TGA")]
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass
class Synthetic:
    """Letters, and the genes in them as (start, end, strand)."""

    sequence: str
    genes: set[tuple[int, int, str]]


def random_letters(rng: np.random.Generator, size: int, at: float = 0.7) -> str:
    return "".join(rng.choice(list("ATGC"), size, p=[at / 2, at / 2, (1 - at) / 2, (1 - at) / 2]))


def make_genome(genes: int, seed: int, tga: float = 0.0, spacers: tuple[int, int] = (60, 200)) -> Synthetic:
    """Genes of 150 to 450 codons on either strand, between spacers rich in A and T.

    ``tga`` is the share of TGA as a sense codon, and ``spacers`` the range of their letters.
    """
    rng = np.random.default_rng(seed)
    codons = [*SENSE, "TGA"]
    usage = np.append(rng.dirichlet(np.ones(len(SENSE))) * (1 - tga), tga)  # unlike that of random letters
    pieces, places, at = [], set(), 0
    for _ in range(genes):
        spacer = random_letters(rng, int(rng.integers(*spacers)))
        leader = "AGGAGG" + random_letters(rng, 7, 0.9)
        body = "ATG" + "".join(rng.choice(codons, int(rng.integers(150, 450)), p=usage)) + "TAA"
        forward = bool(rng.integers(2))
        unit = leader + body
        start = at + len(spacer) + (len(leader) if forward else 0)
        places.add((start, start + len(body), "+" if forward else "-"))
        pieces += [spacer, unit if forward else unit.translate(COMPLEMENT)[::-1]]
        at += len(spacer) + len(unit)
    return Synthetic("".join(pieces), places)


@pytest.fixture(scope="session")
def genome() -> Synthetic:
    """About 150 kb of the standard code."""
    return make_genome(150, seed=1)


@pytest.fixture(scope="session")
def recoded() -> Synthetic:
    """About 150 kb in which TGA is an amino acid."""
    return make_genome(150, seed=2, tga=0.04)


@pytest.fixture(scope="session")
def dense_recoded() -> Synthetic:
    """The same with few such TGA, and hardly a letter between genes."""
    return make_genome(150, seed=4, tga=0.005, spacers=(10, 40))
