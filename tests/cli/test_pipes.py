"""Every input of every verb gives the same from a pipe as from a file, or is refused."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attack.arguments import arguments
from tables import fasta, letters, tsv, write

TINY, LOCATOR, ALIGNED = (
    f"--model {name}.safetensors --threads 1" for name in ("tiny", "locator", "aligned")
)
NEGATIVES = "negatives promoter.fa --recipe genome --distance 20 --genome"
GIVEN = "evaluate --positive promoter --out o.tsv --bootstrap 9 --predictions"
CLASSES = "--class promoter=@promoter.fa --class background=background.fa"

FIT = "--config config.yaml --out o.safetensors --threads 1"

FAMILIES = [(f"s{i}", letters(16, i, "ACGU"), ("tRNA", "miRNA")[i % 2]) for i in range(20)]
MORE = {
    "one.fa": fasta({f"one{i}": letters(20, 100 + i) for i in range(20)}),
    "two.fa": fasta({f"two{i}": letters(20, 200 + i) for i in range(20)}),
    "families.sto": "".join(f"# STOCKHOLM 1.0\n#=GF AC {name}\na {row}\n//\n" for name, row, _ in FAMILIES),
    "families.tsv": tsv("id label", [(name, label) for name, _, label in FAMILIES]),
}

# Command lines; which of the inputs comes from a pipe is marked by @.
READ = f"""
predict @promoter.fa {TINY}
predict promoter.fa @background.fa {TINY}
predict @alignments.sto {ALIGNED}
scan @genome.fa {TINY}
scan @genome.fa {TINY} --out o.gb
scan @genome.gb {TINY} --out o.gb
scan genome.fa {TINY} --bed @starts.bed
scan @genome.fa {LOCATOR} --genes none --html o.html
scan @genome.gb {LOCATOR} --out o.gff3
scan genome.fa {LOCATOR} --genes @genes.gff3
scan genome.fa {LOCATOR} --genes @genome.gb
explain @promoter.fa {TINY}
explain @genome.fa {TINY} --calls windows.gff3
explain genome.fa {TINY} --calls @windows.gff3
explain @genome.gb {LOCATOR} --calls calls.gff3
explain genome.fa {LOCATOR} --calls calls.gff3 --genes @genes.gff3
summary a=@evaluation.tsv
compare calls.tsv calls.tsv --genome-a @genome.fa --genome-b genome.gb
compare calls.tsv calls.tsv --genome-a genome.gb --genome-b @genome.fa
negatives @promoter.fa --recipe shuffle
negatives @table.tsv --recipe shuffle
{NEGATIVES} @genome.fa --starts starts.bed
{NEGATIVES} @genome.gb --starts starts.bed
{NEGATIVES} genome.fa --starts @starts.bed
{NEGATIVES} genome.fa --starts @starts.tsv
{NEGATIVES} genome.fa --starts @genes.gff3 --feature CDS
{NEGATIVES} genome.fa --starts @genome.gb --feature CDS
{NEGATIVES} genome.fa --starts starts.bed --annotation @genes.gff3
split @table.tsv --group-by gene --shares 60,20,20
{GIVEN} @predictions.tsv --labels labels.tsv
{GIVEN} predictions.tsv --labels @labels.tsv
{GIVEN} predictions.tsv --labels labels.tsv --against @other.tsv
evaluate {CLASSES} {TINY} --bootstrap 9 --out o.tsv
evaluate --test data.tsv --train @table.tsv {TINY} --bootstrap 9 --out o.tsv
evaluate --test @alignments.sto --alignment-labels alignments.tsv {ALIGNED} --bootstrap 9 --out o.tsv --no-floor
evaluate --test alignments.sto --alignment-labels @alignments.tsv {ALIGNED} --bootstrap 9 --out o.tsv --no-floor
calibrate tiny.safetensors {CLASSES} --out o.safetensors
prefilter tiny.safetensors @contig.fa --windows 3000 --out o.safetensors
pretrain @genome.fa {FIT}
pretrain genome.fa {FIT.replace("config ", "config @")}
train {CLASSES} {FIT}
train --train data.tsv --validation @table.tsv {FIT}
train --train data.tsv --test @table.tsv {FIT}
train --train @table.tsv {FIT}
train --train table.tsv {FIT.replace("config ", "config @")}
train --train table.tsv --metrics @metrics.json {FIT}
train --train families.sto --alignment-labels @families.tsv --set data.positive=tRNA {FIT.replace("config.", "alignments.")}
train --genome @contig.fa --sites contig.tsv --genes none {FIT.replace("config.", "genomes.")}
train --genome contig.fa --sites @contig.tsv --genes none {FIT.replace("config.", "genomes.")}
train --genome contig.fa --sites contig.tsv --genes @genes.gff3 {FIT.replace("config.", "genomes.")}
""".strip()  # noqa: E501

REFUSED = f"""
predict promoter.fa --model @tiny.safetensors
scan genome.fa --model @tiny.safetensors
explain promoter.fa --model @tiny.safetensors
evaluate --test table.tsv --model @tiny.safetensors
evaluate --test table.tsv --model tiny.safetensors --against @tiny.safetensors
calibrate @tiny.safetensors --test table.tsv --out o.safetensors
prefilter @tiny.safetensors genome.fa --out o.safetensors
export @tiny.safetensors --out o.onnx
models show @tiny.safetensors
models verify @tiny.safetensors
train {FIT} --train table.tsv --teacher @tiny.safetensors
train {FIT} --train table.tsv --init @tiny.safetensors
train --train table.tsv --out o.safetensors --like @tiny.safetensors
gather @tiny.safetensors
predict @promoter.fa promoter.fa {TINY}
evaluate --test @table.tsv --train table.tsv {TINY}
""".strip()


def cases() -> Iterator[str]:
    yield from READ.splitlines()
    tables = {
        "audit": "--out o.tsv --no-baselines",
        "split": "--shares 60,20,20",
        "evaluate": f"{TINY} --bootstrap 9 --out o.tsv",
        "calibrate": "tiny.safetensors --out o.safetensors",
    }
    for verb, more in tables.items():
        yield from (f"{verb} --{name} @table.tsv {more}" for name in ("train", "validation", "test"))
    for verb in ("audit", "split"):
        yield f"{verb} @table.tsv {tables[verb]}"
        yield f"{verb} {CLASSES} {tables[verb]}"


@contextmanager
def piped(path: Path) -> Iterator[None]:
    """Put a pipe with the same bytes in the place of a file."""
    reading, writing = os.pipe()
    os.write(writing, path.read_bytes()[: 1 << 15])  # a model is refused unread
    os.close(writing)
    path.unlink()
    path.symlink_to(f"/dev/fd/{reading}")
    try:
        yield
    finally:
        os.close(reading)


@pytest.fixture
def place(tmp_path, input_files, monkeypatch):
    """Go to a folder of the files."""

    def enter(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for file, content in (input_files | MORE).items():
            write(folder / file, content)
        monkeypatch.chdir(folder)
        return folder

    return enter


@pytest.mark.parametrize("command", list(cases()))
def test_a_pipe_gives_what_its_file_gives(run, place, command):
    made = []
    for name in ("file", "pipe"):
        folder = place(name)
        words = f"{command.replace('@', '')} --quiet"
        if name == "pipe":
            with piped(folder / re.search(r"@(\S+)", command)[1]):
                ended = run(words)
        else:
            ended = run(words)
        outputs = {path.name: path.read_bytes() for path in folder.glob("o.*") if path.is_file()}
        made.append((ended, outputs))
    assert made[0] == made[1]
    assert max(map(len, [made[0][0].out, *made[0][1].values()])) > 100


@pytest.mark.parametrize("command", REFUSED.splitlines())
def test_what_cant_be_read_from_a_pipe_is_refused_in_a_line(run, place, command):
    folder = place("pipe")
    with piped(folder / re.search(r"@(\S+)", command)[1]):
        said = run(command.replace("@", ""), "--quiet", status=2).err
    assert said.count("\n") == 1
    assert "pipe" in said
    assert not [path for path in folder.glob("o.*") if path.is_file()]


def test_every_input_has_its_case():
    tested = {
        (line.split()[0], option)
        for line in (*cases(), *REFUSED.splitlines())
        for option in re.findall(r"(--[\w-]+)[ =](?:\w+=)?@", line)
    }
    read = {
        (argument.verb, argument.name)
        for argument in arguments()
        if argument.is_option
        and argument.takes not in ("output", "folder", "encoder")
        and re.search("FILE|TABLE|FASTA|YAML|JSON|TSV", argument.metavar)
    }
    assert read - tested == {("train", "--sheet")}  # its rows name files
