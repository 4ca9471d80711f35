"""Every input of every verb gives the same from a pipe as from a file, or is refused."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from seqray.cli.main import VERBS, main, request_type
from seqray.cli.options import Options
from seqray.io.files import open_input


def cases() -> Iterator[tuple[str, str]]:
    """A command line, and which of its inputs comes from a pipe, marked by ``@``."""
    tiny, locator = "--model tiny.safetensors --threads 1", "--model locator.safetensors --threads 1"
    yield from (
        ("predict", f"@promoter.fa {tiny}"),
        ("predict", f"promoter.fa @background.fa {tiny}"),
        ("predict", "@alignments.sto --model aligned.safetensors"),
        ("scan", f"@genome.fa {tiny}"),
        ("scan", f"@genome.fa {tiny} --out o.gb"),
        ("scan", f"@genome.gb {tiny} --out o.gb"),
        ("scan", f"genome.fa {tiny} --bed @starts.bed"),
        ("scan", f"@genome.fa {locator} --genes none --html o.html"),
        ("scan", f"@genome.gb {locator} --out o.gff3"),
        ("scan", f"genome.fa {locator} --genes @genes.gff3"),
        ("scan", f"genome.fa {locator} --genes @genome.gb"),
        ("explain", f"@promoter.fa {tiny}"),
        ("explain", f"@genome.fa {tiny} --calls windows.gff3"),
        ("explain", f"genome.fa {tiny} --calls @windows.gff3"),
        ("explain", f"@genome.gb {locator} --calls calls.gff3"),
        ("explain", f"genome.fa {locator} --calls calls.gff3 --genes @genes.gff3"),
        ("summary", "a=@evaluation.tsv"),
        ("negatives", "@promoter.fa --recipe shuffle"),
        ("negatives", "@table.tsv --recipe shuffle"),
    )
    genome = "negatives", "promoter.fa --recipe genome --distance 20"
    yield from (
        (genome[0], f"{genome[1]} {rest}")
        for rest in (
            "--genome @genome.fa --starts starts.bed",
            "--genome @genome.gb --starts starts.bed",
            "--genome genome.fa --starts @starts.bed",
            "--genome genome.fa --starts @starts.tsv",
            "--genome genome.fa --starts @genes.gff3 --feature CDS",
            "--genome genome.fa --starts @genome.gb --feature CDS",
            "--genome genome.fa --starts starts.bed --annotation @genes.gff3",
        )
    )
    for verb, more in (("audit", "--out o.tsv --no-baselines"), ("split", "--shares 60,20,20")):
        yield verb, f"@table.tsv {more}"
        yield from ((verb, f"--{name} @table.tsv {more}") for name in ("train", "validation", "test"))
        classes = f"--class promoter=promoter.fa --class background=@background.fa {more}"
        yield verb, classes
        yield verb, classes.replace("@", "") + " --test-class promoter=@genome.fa"
    yield "split", "@table.tsv --group-by gene --shares 60,20,20"
    held_out = "--test-class promoter=@promoter.fa --test-class background=background.fa"
    given = "--predictions predictions.tsv --labels labels.tsv --positive promoter --out o.tsv --bootstrap 9"
    for name in ("predictions", "labels", "against"):
        words = f"{given} --against other.tsv" if name == "against" else given
        yield "evaluate", words.replace(f"--{name} ", f"--{name} @")
    model = "--model tiny.safetensors --threads 1 --bootstrap 9 --out o.tsv"
    for name in ("train", "validation", "test"):
        yield "evaluate", f"--{name} @table.tsv {model}"
    yield "evaluate", f"--class promoter=@promoter.fa --class background=background.fa {model}"
    yield "evaluate", f"--test data.tsv --train @table.tsv {model}"
    yield "evaluate", f"{held_out} {model}"
    aligned = "evaluate --test alignments.sto --alignment-labels alignments.tsv --model aligned.safetensors"
    for name in ("test", "alignment-labels"):
        verb, words = aligned.replace(f"--{name} ", f"--{name} @").split(" ", 1)
        yield verb, f"{words} --bootstrap 9 --out o.tsv --no-floor"
    for name in ("train", "validation", "test"):
        yield "calibrate", f"tiny.safetensors --{name} @table.tsv --out o.safetensors"
    yield (
        "calibrate",
        "tiny.safetensors --class promoter=@promoter.fa --class background=background.fa --out o.safetensors",
    )
    fit = "--config config.yaml --out o.safetensors --threads 1"
    yield "prefilter", "tiny.safetensors @genome.fa --out o.safetensors"
    yield "prefilter", "tiny.safetensors genome.fa @genome.gb --out o.safetensors"
    yield "pretrain", f"@genome.fa {fit}"
    yield "pretrain", f"genome.fa {fit}".replace("config ", "config @")
    classes = "--class promoter=promoter.fa --class background=background.fa"
    yield "calibrate", f"tiny.safetensors {held_out} --out o.safetensors"
    yield "train", f"{held_out} {fit}"
    yield "train", f"{classes.replace('round=', 'round=@')} {fit}"
    yield from (("train", f"--{name} @table.tsv {fit}") for name in ("train", "validation", "test"))
    aligned = "--train alignments.sto --alignment-labels @alignments.tsv --out o.safetensors"
    yield "train", f"{aligned} --config alignments.yaml"
    yield "train", f"--train table.tsv {fit}".replace("config ", "config @")
    yield "train", f"--train table.tsv --metrics @metrics.json {fit}"


REFUSED = (
    ("predict", "promoter.fa --model @tiny.safetensors"),
    ("scan", "genome.fa --model @tiny.safetensors"),
    ("explain", "promoter.fa --model @tiny.safetensors"),
    ("evaluate", "--test table.tsv --model @tiny.safetensors"),
    ("evaluate", "--test table.tsv --model tiny.safetensors --against @tiny.safetensors"),
    ("calibrate", "@tiny.safetensors --test table.tsv --out o.safetensors"),
    ("prefilter", "@tiny.safetensors genome.fa --out o.safetensors"),
    ("export", "@tiny.safetensors --out o.onnx"),
    ("models", "show @tiny.safetensors"),
    ("models", "verify @tiny.safetensors"),
    ("train", "--config config.yaml --train table.tsv --out o.safetensors --teacher @tiny.safetensors"),
    ("train", "--config config.yaml --train table.tsv --out o.safetensors --init @tiny.safetensors"),
    ("train", "--train table.tsv --out o.safetensors --like @tiny.safetensors"),
    ("gather", "@tiny.safetensors"),
    ("predict", "@promoter.fa promoter.fa --model tiny.safetensors"),
    ("evaluate", "--test @table.tsv --train table.tsv --model tiny.safetensors"),
)
OUTPUTS = {
    *("--out", "--html", "--json", "--multiqc", "--skipped", "--proof", "--track", "--plot", "--motifs"),
    *("--heads", "--inputs", "--faithfulness", "--row-profile", "--work-dir", "--save-config"),
}
ELSEWHERE = {
    (verb, "--backbone")
    for verb in ("predict", "scan", "explain", "evaluate", "calibrate", "prefilter", "train")
}
ELSEWHERE |= {("train", f"--{name}") for name in ("genome", "sites", "genes", "sheet")}  # see below


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
def seqray(tmp_path, input_files, monkeypatch, capfd):
    """Run a verb in a folder of the files; gives status, messages and outputs."""
    monkeypatch.setattr("seqray.training.fit.train", _stop)
    monkeypatch.setattr("seqray.training.pretraining.pretrain", _stop)
    monkeypatch.setattr("seqray.training.prefilter.teach_prefilter", _stop)

    def run(verb: str, words: str, name: str) -> tuple[int, str, dict[str, bytes]]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        for file, data in input_files.items():
            (folder / file).unlink(missing_ok=True)
            (folder / file).write_bytes(data)
        marked = re.search(r"@(\S+)", words)
        if name == "piped" and marked:
            with piped(folder / marked[1]):
                status = main([verb, *words.replace("@", "").split(), "--quiet"])
        else:
            status = main([verb, *words.replace("@", "").split(), "--quiet"])
        out, err = capfd.readouterr()
        made = {path.name: path.read_bytes() for path in folder.iterdir() if path.name[:2] == "o."}
        return status, err, made | {"-": out.encode()}

    return run


def _stop(config, data, *_, **settings):
    """Training, as far as inputs matter: what was read."""
    known = [(one.id, one.sequence, one.label) if hasattr(one, "label") else one for one in data]
    sys.stdout.write(f"{config} {known}")
    raise KeyboardInterrupt


@pytest.mark.parametrize(("verb", "words"), list(cases()))
def test_a_pipe_gives_what_its_file_gives(seqray, verb, words):
    status, err, expected = seqray(verb, words, "files")
    assert status in (0, 130), err
    assert max(map(len, expected.values())) > 100
    assert seqray(verb, words, "piped") == (status, err, expected)


@pytest.mark.parametrize(("verb", "words"), REFUSED)
def test_what_cant_be_read_from_a_pipe_is_refused_in_a_line(seqray, verb, words):
    status, err, made = seqray(verb, words, "piped")
    assert status == 2
    assert len(err.splitlines()) == 1
    assert "pipe" in err
    assert list(made) == ["-"]


def declared(options: type[Options]) -> Iterator[tuple[str, str]]:
    """Name and value of each option, of groups too."""
    for one in fields(options):
        hint = get_type_hints(options)[one.name]
        if isinstance(hint, type) and issubclass(hint, Options):
            yield from declared(hint)
        for name in one.metadata.get("names", [])[:1]:
            yield name, str(one.metadata["metavar"])


def test_every_input_has_its_case():
    lines = (*cases(), *REFUSED)
    tested = {
        (verb, word) for verb, words in lines for word in re.findall(r"--[\w-]+(?=[ =](?:\w+=)?@)", words)
    }
    named = {
        (verb, name)
        for verb in VERBS
        for name, value in declared(request_type(verb))
        if re.search("FILE|TABLE|FASTA|YAML|JSON|DIR|TSV", value) and name not in OUTPUTS
    }
    assert named - tested == ELSEWHERE


def test_a_genome_to_learn_from_is_kept(seqray, monkeypatch, input_files):
    """Training of locators reads its files where it computes."""
    read = {}

    def stop(config, data, **settings):
        [row] = data.rows
        for name in (row.genome, row.sites, row.genes):
            for _ in range(2):
                with open_input(name) as handle:
                    read[name] = handle.read()
        raise KeyboardInterrupt

    monkeypatch.setattr("seqray.training.genomes.fit.train_locator", stop)
    words = (
        "--genome genome.fa --sites starts.tsv --genes genes.gff3 --config locator.yaml --out o.safetensors"
    )
    for name in ("genome.fa", "starts.tsv", "genes.gff3"):
        status, err, _ = seqray("train", words.replace(name, f"@{name}"), "piped")
        assert (status, read[name]) == (130, input_files[name]), err
