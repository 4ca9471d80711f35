"""Names of predicted genes, as a page shows them: without the words of NCBI before the accession."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from seqray.annotation import Gene
from seqray.core.results import Call


def short_names(genes: Mapping[str, Sequence[Gene]]) -> dict[str, str]:
    """Shorter names of genes that were named after their contig, where these are unique.

    Names that stay are left out.

    Examples
    --------
    >>> short_names({"gi|9626243|ref|NC_001416.1|": [Gene(0, 9, "+", "gi|9626243|ref|NC_001416.1|_46")]})
    {'gi|9626243|ref|NC_001416.1|_46': 'NC_001416.1_46'}
    """
    pairs = [(gene.name, _short_name(gene.name, contig)) for contig, found in genes.items() for gene in found]
    uses = Counter(short for _, short in pairs)
    return {name: short for name, short in pairs if name != short and uses[short] == 1}


def _short_name(name: str, contig: str) -> str:
    accession, number = contig.rstrip("|").rpartition("|")[2], name.removeprefix(f"{contig}_")
    return f"{accession}_{number}" if "|" in contig and number != name and number.isdigit() else name


def rename_genes(genes: Mapping[str, Sequence[Gene]], names: Mapping[str, str]) -> dict[str, Sequence[Gene]]:
    """The same genes under other names."""
    return {
        contig: [replace(gene, name=names.get(gene.name, gene.name)) for gene in found]
        for contig, found in genes.items()
    }


def rename_in_call(call: Call, names: Mapping[str, str]) -> Call:
    """A call that names the genes around it in the same way."""
    context = call.context
    if context is None:
        return call
    gene, within = (names.get(name, name) for name in (context.gene, context.within))
    return replace(call, context=replace(context, gene=gene, within=within))
