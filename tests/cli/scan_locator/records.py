"""Files of genes and sequences for scans with a locator."""

from __future__ import annotations

GENES = [("one", 301, 900, "+"), ("one", 1001, 1900, "-"), ("two", 100, 399, "+")]


def genbank(name, text, genes=()):
    lines = [f"LOCUS       {name} {len(text)} bp    DNA     circular BCT 01-JAN-2024", f"VERSION     {name}"]
    lines.append("FEATURES             Location/Qualifiers")
    for number, place in enumerate(genes):
        lines += [f"     CDS             {place}", f'                     /gene="g{number}"']
    lines.append("ORIGIN")
    for i in range(0, len(text), 60):
        parts = [text[i : i + 60][j : j + 10] for j in range(0, 60, 10)]
        lines.append(f"{i + 1:>9} {' '.join(filter(None, parts)).lower()}")
    return "\n".join([*lines, "//", ""])
