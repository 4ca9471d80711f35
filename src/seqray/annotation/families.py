"""Which features of a file belong to one gene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seqray.io.tracks import AnnotatedFeature

Family = list[AnnotatedFeature]
"""What is transcribed, then the features that describe it, up to the gene."""

MAX_FAMILY_SIZE = 10
"""A file may name parents without end, or thousands of genes alike."""
_MESSENGERS = ("mRNA", "transcript", "primary_transcript")


def is_wanted(kind: str) -> bool:
    """Whether features of a kind can be genes, or parts of the description of a gene."""
    return kind == "CDS" or is_locus(kind) or kind in _MESSENGERS or kind.endswith("RNA")


def is_locus(kind: str) -> bool:
    """Whether a kind names the place of a gene, not its product."""
    return kind in ("gene", "pseudogene") or kind.endswith("_gene")


def families_of(features: Sequence[AnnotatedFeature]) -> Iterator[Family]:
    """One family for each CDS and each RNA, and for each gene to which none of these belongs."""
    parents = {(one.contig, one.attributes["ID"]): one for one in features if "ID" in one.attributes}
    loci: dict[tuple[str, str], Family] = {}
    for locus in features:
        if is_locus(locus.kind):
            for key in _keys(locus):
                loci.setdefault(key, []).append(locus)
    described, met = set[int](), set[tuple[str, str]]()
    for feature in features:
        if not is_locus(feature.kind) and feature.kind not in _MESSENGERS:
            family = _with_parents(feature, parents)
            if not is_locus(family[-1].kind):
                key = next((key for key in _keys(feature) if key in loci), None)
                if key is not None:
                    family += loci[key][:MAX_FAMILY_SIZE]
                    described.update(map(id, loci[key] if key not in met else ()))
                    met.add(key)
            described.update(map(id, family))
            yield family
    yield from ([one] for one in features if is_locus(one.kind) and id(one) not in described)


def _keys(feature: AnnotatedFeature) -> Iterator[tuple[str, str]]:
    """What a gene and its product share where no parent is named, the surest first."""
    attributes, parts = feature.attributes, feature.parts
    if "locus_tag" in attributes:
        yield feature.contig, f"locus {attributes['locus_tag']}"
    span = min(part.start for part in parts), max(part.end for part in parts), parts[0].strand
    yield feature.contig, f"span {span}"
    if "gene" in attributes and "locus_tag" not in attributes:
        yield feature.contig, f"gene {attributes['gene']}"


def _with_parents(feature: AnnotatedFeature, parents: Mapping[tuple[str, str], AnnotatedFeature]) -> Family:
    """A feature, the parent of its contig that its file names, and so on; the first of several parents."""
    family = [feature]
    while len(family) < MAX_FAMILY_SIZE:
        parent = parents.get((feature.contig, family[-1].attributes.get("Parent", "").split(",")[0]))
        if parent is None or any(parent is one for one in family):
            break
        family.append(parent)
    return family
