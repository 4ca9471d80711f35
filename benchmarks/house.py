"""How large the inside of seqray is: lines, files, functions, types, imports, and who asks for the kind.

    python benchmarks/house.py --write benchmarks/results/house.tsv

- *lines*: of ``.py`` and ``.pyi``; *files*, *functions*, *classes* and the rest: of ``.py`` alone;
- *import lines*: share of the lines that import statements take;
- *files that ask for the kind*: those that compare ``kind``, or an attribute of this name, with a name of a
  kind of model (`KINDS`), by an operator or by ``match``.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"sequence", "backbone", "locator", "alignment"}


def _is_kind(node: ast.AST) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) == "kind"


def _names_kind(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Constant) and n.value in KINDS for n in ast.walk(node))


def asks_for_kind(tree: ast.AST) -> bool:
    """Whether a file compares the kind of a model with a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_kind, sides)) and any(map(_names_kind, sides)):
                return True
        if isinstance(node, ast.Match) and _is_kind(node.subject) and any(map(_names_kind, node.cases)):
            return True
    return False


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def count(tree: ast.AST) -> Counter[str]:
    """Return what a file holds."""
    found = Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found["functions"] += 1
        elif isinstance(node, ast.ClassDef):
            found["classes"] += 1
            found["dataclasses"] += _is_dataclass(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found["import lines"] += (node.end_lineno or node.lineno) - node.lineno + 1
    found["files that ask for the kind"] += asks_for_kind(tree)
    return found


def measure(source: Path = ROOT / "src" / "seqray") -> dict[str, int | float]:
    """Return the figures of a package by name; lines of the packages in it as ``lines in core``."""
    whole, packages, plain = Counter[str](), Counter[str](), 0
    for path in sorted(source.rglob("*.py*")):
        if path.suffix not in (".py", ".pyi"):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        whole["lines"] += lines
        inside = path.relative_to(source).parts
        packages[f"lines in {inside[0]}"] += lines if len(inside) > 1 else 0
        if path.suffix == ".py":
            plain += lines
            whole += count(ast.parse(text)) + Counter(files=1)
    names = ("lines", "files", "functions", "classes", "dataclasses", "files that ask for the kind")
    share = round(100 * whole["import lines"] / plain, 1) if plain else 0.0
    return {name: whole[name] for name in names} | {"import lines, %": share} | dict(+packages)


def rows() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "what\tcount"
    yield from (f"{name}\t{value}" for name, value in measure().items())


def main() -> None:
    """Print the figures, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="TSV", help="write the table to this file, too")
    arguments = parser.parse_args()
    table = "\n".join(rows())
    print(table)
    if arguments.write:
        arguments.write.write_text(table + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
