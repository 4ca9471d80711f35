"""The documentation runs: code as code, its output as printed, command lines at least through the parser.

A ``python`` block is executed; where a ``text`` block follows it directly, that is its standard output.
A line ``$ seqray ...`` in a ``console`` block is parsed by the command's own parser. A block marked
``console run`` is run in a shell, and what stands below each command is its standard output, where numbers
may differ in the digits that depend on the processor. A relative link names a file of the repository.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

import cli_reference
import model_pages
import site_pages
from rerun import PAGES, ROOT, rerun, run, same, sessions
from seqray.cli.main import VERBS, parser_of, usage
from seqray.core.errors import ConfigError
from seqray.modelfile import header
from seqray.modelfile.file import load_model

FENCE = re.compile(r"^```(\w*)(?: run)?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def code_blocks(text: str) -> list[tuple[int, str, str | None]]:
    """Line, source and expected output of each ``python`` block."""
    blocks, found = [], list(FENCE.finditer(text))
    for block, after in pairwise([*found, None]):
        if block and block[1] == "python":
            follows = after and after[1] == "text" and not text[block.end() : after.start()].strip()
            line = text.count("\n", 0, block.start()) + 1
            blocks.append((line, block[2], after[2] if after and follows else None))
    return blocks


def command_lines(text: str) -> list[str]:
    """Arguments of every ``$ seqray`` line; one that ends in a backslash goes on."""
    consoles = "".join(block[2] for block in FENCE.finditer(text) if block[1] == "console")
    lines = consoles.replace("\\\n", " ").splitlines()
    return [found[1] for line in lines if (found := re.match(r"\$ (?:.*\| *)?seqray +(.*)", line))]


def parse(words: list[str]) -> argparse.Namespace:
    """Hand the words behind ``seqray`` to the parser of their verb."""
    return parser_of(words[0]).parse_args(words[1:])


def run_block(source: str, name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), {"__name__": "docs"})
    return printed.getvalue()


CODE = [(page, *block) for page in PAGES for block in code_blocks(read(page))]
SESSIONS = [(page, session) for page in PAGES for session in sessions(read(page))]
MADE = {site_pages.DOCS / uri for uri in site_pages.generated()}
COMMANDS = [(page, line) for page in PAGES for line in command_lines(read(page))]


NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_and_print_what_they_show(path):
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            assert printed.getvalue() == "".join(line for out in cell["outputs"] for line in out["text"])


@pytest.mark.parametrize(("page", "line", "source", "output"), CODE, ids=[f"{c[0]}:{c[1]}" for c in CODE])
def test_code_runs_and_prints_what_the_page_says(page, line, source, output, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    printed = run_block("\n" * line + source, page)
    assert output is None or printed == output


@pytest.mark.parametrize(("page", "session"), SESSIONS)
def test_sessions_show_what_is_printed(seqray_forks, page, session, tmp_path):
    for command, shown in session:
        printed = run(command, tmp_path, seqray_forks.folder)
        assert same(printed, shown), f"$ {command}\n{printed}(python docs/rerun.py writes this to the page)"


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_command_lines_parse(page, command):
    words = shlex.split(re.split(r" (?:[|>]|2>) ?", command)[0], comments=True)
    assert words in (["--help"], ["--version"]) or parse(words)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", read(page))
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", prose)
    files = [Path(os.path.normpath((ROOT / page).parent / target)) for target in targets]
    assert [str(file) for file in files if not file.exists() and file not in MADE] == []


IN_HOUSE = re.compile(r"\b(locator|card|member|letter|floor)s?\b", re.IGNORECASE)
# "letters" are those of a file or an alphabet, whichever kind of sequence it holds
PLAIN = re.compile(
    r"(?:lower|upper)[- ]case letters?|(?:capital|small|other|unknown|missing) letters?"
    r"|letters? (?:case|codes?)|case of letters|letters (?:other than|to upper case)"
    r"|letters (?:that it does not know|or more, of which)"
    r"|an alphabet of A letters|letters, digits|kind: locator"
)


def in_house_words(text: str) -> list[str]:
    """Words that meet only readers of the code, with what surrounds them."""
    prose = re.sub(r"`+[^`]*`+|\]\([^)]*\)|--[\w-]+|<[^>]*>|https?://\S+", "", FENCE.sub("", text))
    prose = PLAIN.sub("", " ".join(prose.split()))
    return [prose[max(0, found.start() - 40) : found.end() + 20] for found in IN_HOUSE.finditer(prose)]


GUIDES = [
    page
    for page in PAGES
    if not page.startswith(("CHANGELOG", "CONTRIBUTING", "docs/decisions", "benchmarks"))
]


@pytest.mark.parametrize("page", GUIDES)
def test_guides_use_words_of_biologists(page):
    """A model for genomes, its description, networks, bases or residues, and the baseline."""
    assert in_house_words(read(page)) == []


@pytest.mark.parametrize("verb", VERBS)
def test_help_uses_words_of_biologists(verb):
    assert in_house_words(parser_of(verb).format_help()) == in_house_words(usage()) == []


def test_the_readers_find_what_they_should():
    text = "```python\nprint(1)\n```\n```text\n1\n```\n\n```python\nx = 1\n```\nand\n\n```text\nfree\n```\n"
    assert code_blocks(text) == [(1, "print(1)\n", "1\n"), (8, "x = 1\n", None)]
    shell = (
        "```console\n$ seqray scan a.fa \\\n    --out b\noutput seqray x\n$ zcat a | seqray predict -\n```\n"
    )
    assert [shlex.split(c) for c in command_lines(shell)] == [
        ["scan", "a.fa", "--out", "b"],
        ["predict", "-"],
    ]
    shown = "```console run\n$ seqray a\n0.5 x\n$ seqray b\n```\n"
    assert sessions(shown) == [[("seqray a", "0.5 x\n"), ("seqray b", "")]]
    assert same("p\t0.91234\n", "p 0.91228\n")
    assert not same("p 0.92\n", "p 0.91\n")
    assert not same("p 0.91\nq\n", "p 0.91\n")
    assert not same("+", "-")
    assert rerun("a\n```console run\n$ echo 1\n2\n```\nb\n") == "a\n```console run\n$ echo 1\n1\n```\nb\n"
    with pytest.raises(RuntimeError):
        rerun("```console run\n$ exit 3\n```\n")
    assert parse(["models", "show", "ecoli-promoter"]).models == ["ecoli-promoter"]
    with pytest.raises(ConfigError):
        parse(["models", "--no-such-option"])
    with pytest.raises(NameError):
        run_block("undefined", "page")


GENBANK = """LOCUS       one                      300 bp    DNA     linear   BCT 01-JAN-2000
VERSION     one.1
FEATURES             Location/Qualifiers
     CDS             11..40
     CDS             <51..80
     CDS             91..>120
     CDS             complement(131..160)
     CDS             complement(171..>200)
     CDS             complement(<211..240)
     CDS             join(251..260,271..290)
ORIGIN
//
"""


def test_the_recipe_for_start_codons_writes_those_that_are_known(tmp_path, monkeypatch):
    """The first letter is the left end on +, and the right end on -; unless that end is open."""
    (tmp_path / "genome.gbk").write_text(GENBANK)
    monkeypatch.chdir(tmp_path)
    blocks = [block[2] for block in FENCE.finditer(read("docs/how-to/train-locator.md")) if block[1] == "py"]
    run_block(blocks[0], "train-locator")
    found = [row.split("\t")[:3] for row in (tmp_path / "starts.tsv").read_text().splitlines()[1:]]
    assert found == [["one.1", *row] for row in (("11", "+"), ("91", "+"), ("160", "-"), ("240", "-"))]


def test_the_recipe_that_divides_predictions_gives_the_rows_of_the_whole_or_fails(seqray_forks, tmp_path):
    (tmp_path / "sequences.fa").write_bytes((ROOT / "data/example/promoters.fa").read_bytes())
    [recipe] = (
        block[2] for block in FENCE.finditer(read("docs/how-to/cluster.md")) if "part.$i.fa" in block[2]
    )
    predict, done, join = recipe.partition("\ndone\n")
    whole = "seqray predict sequences.fa --model ecoli-promoter --out whole.tsv"
    run(f"{predict}{done}{whole}", tmp_path, seqray_forks.folder)
    for loss in ("mv part.3.tsv kept", "mv kept part.3.tsv; cp part.2.tsv kept; sed -i '$d' part.2.tsv"):
        with pytest.raises(RuntimeError, match=r"part\.3\.tsv: No such file|predict the parts again"):
            run(f"set -euo pipefail; {loss}; {join}", tmp_path)
        assert not (tmp_path / "predictions.tsv").exists()
    (tmp_path / "predictions.tsv").write_text("of an earlier run\n")
    with pytest.raises(RuntimeError):  # its first part fails
        run(recipe.replace("seqray predict", "false"), tmp_path)
    assert not (tmp_path / "predictions.tsv").exists()
    run(f"mv kept part.2.tsv; {join}", tmp_path)
    tables = [(tmp_path / f"{name}.tsv").read_text().splitlines() for name in ("predictions", "whole")]
    rows = [sorted(line.split("\t") for line in lines if not line.startswith("#")) for lines in tables]
    for own, others in zip(*rows, strict=True):  # the last of six digits may differ
        assert (own[:3], own[5:]) == (others[:3], others[5:])
        assert own[0] == "id" or [*map(float, own[3:5])] == pytest.approx(
            [*map(float, others[3:5])], rel=1e-5
        )
    assert len(tables[0]) == len(tables[1]) > 10


TABLES = r"""
predict data/promoters.fa --model ecoli-promoter --coverage 0.9 --out predictions.tsv --skipped skipped.tsv
scan data/promoters.fa --model ecoli-promoter --null-mb 0 --threshold 0.1 --out windows.tsv
scan data/stretch.gb --model bacteria-genome --region ecoli_stretch:1-3000 --out calls.tsv \
    --out calls.gff3 --genes-out genes.tsv
compare calls.tsv calls.tsv --genome-a data/stretch.gb --genome-b data/stretch.gb --out changes.tsv
explain data/promoters.fa --model ecoli-promoter --check-records 1 \
    --shuffles 0 --heads heads.tsv --out positions.tsv
explain data/stretch.gb --model bacteria-genome --calls calls.gff3 --best-calls 1 --no-check \
    --shuffles 0 --inputs inputs.tsv --out of_calls.tsv
explain one.afa --model rna-family-type --no-check --out columns.tsv --row-profile rows.tsv
negatives data/promoters.fa --recipe shuffle --out negatives.tsv
split negatives.tsv --out split.tsv --proof proof.tsv
split negatives.tsv --folds 2 --out folds.tsv
audit negatives.tsv --no-baselines --out audit.tsv
evaluate --model ecoli-promoter --test negatives.tsv --bootstrap 2 --no-floor --out figures.tsv
"""
COLUMNS = [  # a table that is made, part of the page, number of its table there, columns that it lacks
    ("predictions.tsv", "Predictions", 0, ""),
    ("windows.tsv", "Calls", 0, ""),
    ("calls.tsv", "Calls", 3, "tata tata_start bre bre_start"),
    ("genes.tsv", "Genes", 0, ""),
    ("changes.tsv", "Comparisons", 0, ""),
    ("positions.tsv", "Explanations: ", 0, ""),
    ("heads.tsv", "Explanations: ", 2, ""),
    ("inputs.tsv", "Explanations: ", 3, ""),
    ("columns.tsv", "Explanations of", 0, ""),
    ("negatives.tsv", "Negatives", 0, "context"),
    ("split.tsv", "Splits", 0, "fold context"),
    ("folds.tsv", "Splits", 0, "context"),
    ("proof.tsv", "Splits", 1, ""),
    ("audit.tsv", "Audits", 0, ""),
    ("figures.tsv", "Evaluations", 1, ""),
]


@pytest.fixture(scope="module")
def headers(seqray_forks, tmp_path_factory):
    """The columns of each table, in their order."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "one.afa").write_text(">a\nGGGAAACCC\n>b\nGGGAAACCC\n")
    script = re.sub("^(?=[a-z])", "seqray ", TABLES, flags=re.MULTILINE).replace("data/", "data/example/")
    run(f"set -e\n{script}", folder, seqray_forks.folder)
    lines = {path.name: path.read_text().splitlines() for path in folder.glob("*.tsv")}
    return {name: next(one for one in text if one[0] != "#").split("\t") for name, text in lines.items()}


@pytest.mark.parametrize(("table", "part", "number", "lacking"), COLUMNS)
def test_the_page_of_formats_names_the_columns_of_each_table_in_order(headers, table, part, number, lacking):
    text = read("docs/formats.md").partition(f"\n## {part}")[2].partition("\n## ")[0]
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    cells = re.findall(r"^\|(.*?)\|", blocks[number], re.MULTILINE)[2:]
    named = [name for name in re.findall("`(.+?)`", "".join(cells)) if name not in lacking.split()]
    shown = dict.fromkeys("p_<class>" if name.startswith("p_") else name for name in headers[table])
    assert named == [*shown][-len(named) :]


def test_the_reference_has_every_verb_and_option():
    page = cli_reference.page()
    for verb in VERBS:
        part = page.partition(f"## seqray {verb}\n")[2].partition("\n## seqray ")[0]
        parser = cli_reference.parser_of(verb)
        sub = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        parsers = [parser, *(inner for action in sub for inner in action.choices.values())]
        actions = [action for one in parsers for action in one._actions if action.help != argparse.SUPPRESS]
        for option in {option for action in actions for option in action.option_strings} - {"-h", "--help"}:
            assert f"`{option}`" in part or f"`{option} " in part, option


def test_usage_lines_are_folded_between_options():
    assert cli_reference.fold("seqray x [--a {1,2}] --b FILE [--c D]", 20) == (
        "seqray x [--a {1,2}]\n    --b FILE [--c D]"
    )


def test_every_shipped_model_has_a_page_with_its_card():
    pages = model_pages.pages()
    assert set(pages) == {"models/index.md", *(f"models/{name}.md" for name in header.available_models())}
    page = pages["models/ecoli-promoter.md"]
    card = load_model("ecoli-promoter").card
    for limit in card.info["limits"]:
        assert model_pages.escape(limit) in page
    assert f"{card.threshold:.4g}" in page
    assert load_model("ecoli-promoter").sha256 in page
    assert model_pages.escape("a|b <c> _d_") == "a\\|b \\<c> \\_d\\_"


def test_links_of_the_repository_become_links_of_the_site():
    pages = {"concepts/splits.md", "formats.md", "contributing.md", "decisions/index.md", "data/example.md"}
    text = (
        "[a](../concepts/splits.md#what) [b](../../CONTRIBUTING.md) [c](../decisions/) [d](https://x.org/a)\n"
        "[the code](../../src/seqray/words.py) [words.py](../../src/seqray/words.py) [e](#here)\n"
        "```\n[f](../formats.md)\n```\n```console run\n$ seqray\n```\n"
    )
    assert site_pages.for_site(text, "how-to/scan.md", pages) == (
        "[a](../concepts/splits.md#what) [b](../contributing.md) [c](../decisions/index.md) [d](https://x.org/a)\n"
        "the code (`src/seqray/words.py`) words.py [e](#here)\n"
        "```\n[f](../formats.md)\n```\n```console\n$ seqray\n```\n"
    )
    copied = "[a](docs/formats.md) [b](data/example/README.md) [c](LICENSE)\n"
    assert site_pages.for_site(copied, "contributing.md", pages) == (
        "[a](formats.md) [b](data/example.md) c (`LICENSE`)\n"
    )


def test_pictures_are_drawn_by_the_script():
    picture = re.compile(r"!\[[^\]]*\]\([^)]*figures/([^)]+)\)")
    shown = {name for page in PAGES for name in picture.findall(read(page))}
    drawn = set(re.findall(r'"([\w-]+\.(?:svg|png))"', read("docs/figures.py")))
    assert shown == drawn == {path.name for path in (ROOT / "docs/figures").iterdir()}
