"""Bad values for each argument: files of every kind of damage, numbers, choices, names, outputs."""

import gzip
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

from attack.arguments import Argument, arguments
from seqray.cli.messages import escape_controls

# A command line that works, for a verb or for one of its options; @ is where the value of the option goes.
WORKING = {
    "predict": "promoter.fa --model tiny.safetensors --threads 1 --out o.tsv",
    "scan": "genome.fa --model tiny.safetensors --threads 1 --null-mb 0",
    "scan --genes": "genome.fa --model locator.safetensors --threads 1 --genes @",
    "scan --species": "genome.fa --model locator.safetensors --genes none --precision 0.5 --species @",
    "scan --gene": "genome.fa --model locator.safetensors --threads 1 --genes genes.gff3 --gene @",
    "scan --genes-out": "genome.fa --model locator.safetensors --threads 1 --genes genes.gff3 --genes-out @",
    "scan --shard": "genome.fa --model tiny.safetensors --null-mb 0 --out o.shard --shard @",
    "gather": "one.shard two.shard",
    "gather shards": "@ two.shard",
    "compare": "calls.tsv calls.tsv",
    "compare b": "calls.tsv @",
    "compare --genome-a": "calls.tsv calls.tsv --genome-a @ --genome-b genome.fa",
    "compare --genome-b": "calls.tsv calls.tsv --genome-a genome.fa --genome-b @",
    "summary": "a=evaluation.tsv",
    "summary tables": "a=@",
    "explain": "promoter.fa --model tiny.safetensors --no-check",
    "explain --calls": "genome.fa --model tiny.safetensors --no-check --calls @",
    "explain --genes": "genome.fa --model locator.safetensors --no-check --calls calls.gff3 --genes @",
    "explain --faithfulness": "promoter.fa --model tiny.safetensors --faithfulness @",
    "explain --inputs": "genome.fa --model locator.safetensors --no-check --genes none --calls calls.gff3 "
    "--inputs @",
    "explain --row-profile": "alignments.sto --model aligned.safetensors --no-check --row-profile @",
    "negatives": "promoter.fa --recipe shuffle",
    "negatives --recipe": "promoter.fa --recipe @",
    "negatives --genome": "promoter.fa --recipe genome --starts none --genome @",
    "negatives --annotation": "promoter.fa --recipe genome --genome genome.fa --annotation @ --feature CDS",
    "negatives --starts": "promoter.fa --recipe genome --genome genome.fa --starts @",
    "negatives --feature": "promoter.fa --recipe genome --genome genome.fa --starts genes.gff3 --feature @",
    "audit": "table.tsv --no-baselines",
    "split": "table.tsv",
    "pretrain": "genome.fa --config config.yaml --out o.safetensors",
    "train": "--train table.tsv --config config.yaml --out o.safetensors",
    "train --like": "--train table.tsv --like @ --out o.safetensors",
    "train --alignment-labels": "--train alignments.sto --alignment-labels @ --config alignments.yaml "
    "--out o.safetensors",
    "evaluate": "--test table.tsv --model tiny.safetensors --no-floor --bootstrap 9",
    "evaluate --predictions": "--predictions @ --labels labels.tsv --positive promoter --no-floor",
    "evaluate --labels": "--predictions predictions.tsv --labels @ --positive promoter --no-floor",
    "evaluate --alignment-labels": "--test alignments.sto --alignment-labels @ --no-floor "
    "--model aligned.safetensors",
    "calibrate": "tiny.safetensors --test table.tsv --out o.safetensors",
    "prefilter": "tiny.safetensors contig.fa --windows 3000 --out o.safetensors",
    "prefilter input": "tiny.safetensors @ --windows 3000 --out o.safetensors",
    "export": "tiny.safetensors --out o.onnx",
    "models": "",
    "models list": "",
    "models show": "tiny.safetensors",
    "models verify": "tiny.safetensors",
    "completion": "bash",
}
ANY_SUFFIX = ("--skipped", "--save-config", "--heads", "--faithfulness")
SAID_AS = {"scan --species": "precision"}  # where an error is about what the argument belongs to
GIVEN = "--predictions predictions.tsv --labels labels.tsv --bootstrap 9 --no-floor"
WORKING |= {
    f"evaluate --{name}": f"{GIVEN} --positive promoter --{name} @"
    for name in ("positive", "score-column", "id-column")
}
for _name in ("genome", "sites", "genes", "hold-out", "site-class", "species", "fold"):
    _words = "--genome contig.fa --sites contig.tsv --genes none --config genomes.yaml --out o.safetensors"
    _known = {"genome": "contig.fa", "sites": "contig.tsv", "genes": "none"}.get(_name)
    _words = _words.replace(f"--{_name} {_known}", f"--{_name} @") if _known else f"{_words} --{_name} @"
    WORKING[f"train --{_name}"] = _words
WORKING["train --sheet"] = "--sheet @ --config genomes.yaml --out o.safetensors"
for _verb, _rest in {
    "audit": "--no-baselines",
    "split": "",
    "train": "--config config.yaml --out o.safetensors",
    "evaluate": "--model tiny.safetensors --no-floor --bootstrap 9",
    "calibrate": "tiny.safetensors --out o.safetensors",
}.items():
    for _name in ("class", "test-class"):
        WORKING[f"{_verb} --{_name}"] = f"--{_name} promoter=@ --{_name} background=background.fa {_rest}"
    for _name in ("train", "validation", "test"):
        WORKING[f"{_verb} --{_name}"] = f"--{_name} @ {_rest}"

# A good file for what is read; bad ones are made of it.
GOOD = {
    "sequences": "genome.fa",
    "labeled table": "table.tsv",
    "sequences of a class": "promoter.fa",
    "labels": "labels.tsv",
    "predictions": "predictions.tsv",
    "parts": "starts.bed",
    "genes": "genes.gff3",
    "calls": "windows.gff3",
    "sites": "starts.tsv",
    "sheet": "sheet.tsv",
    "table to sum up": "evaluation.tsv",
    "table of calls": "calls.tsv",
    "shard": "one.shard",
    "model": "tiny.safetensors",
    "settings": "config.yaml",
    "figures": "metrics.json",
}
_NOISE = random.Random(5).randbytes(4000)
_PICKLE = b"\x80\x04\x95\x1a\0\0\0\0\0\0\0\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."

CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "blank": lambda good: b" \n\n\n",
    "a NUL byte": lambda good: good[: len(good) // 2] + b"\0" + good[len(good) // 2 :],
    "UTF-16": lambda good: good.decode("latin-1").encode("utf-16"),
    "UTF-16 without a mark": lambda good: good.decode("latin-1").encode("utf-16-be"),
    "not UTF-8": lambda good: b"\xe9\xff" + good,
    "cut gzip": lambda good: gzip.compress(good + _NOISE)[:-2000],
    "damaged gzip": lambda good: gzip.compress(good + _NOISE)[:-3000] + b"\xff" * 3000,
    "gzip in gzip": lambda good: gzip.compress(gzip.compress(good)),
    "zip": lambda good: b"PK\x03\x04" + good,
    "zstd": lambda good: b"\x28\xb5\x2f\xfd" + good,
    "binary": lambda good: b"\x89PNG\r\n\x1a\n" + _NOISE,
    "noise": lambda good: _NOISE,
    "a pickle": lambda good: _PICKLE,
    "one huge line": lambda good: b"ACGT" * 500_000,
    "FASTA": lambda good: b">a\nACGTACGTACGTACGTACGT\n>b\nACGTACGTACGTTCGTACGT\n",
    "a table of other columns": lambda good: b"one\ttwo\n1\t2\n3\t4\n",
    "rows of other lengths": lambda good: good.rstrip(b"\n") + b"\tx\ty\tz\n",
    "HTML": lambda good: b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n",
    "JSON": lambda good: b'{"id": ["a"], "sequence": ["ACGT"]}\n',
    "prose": lambda good: "Dear editor,\n\nplease find enclosed \u2013 our data.\n".encode(),
    "twice": lambda good: good + good,
    "a flipped bit": lambda good: good[:-9] + bytes([good[-9] ^ 4]) + good[-8:],
    "a wrong letter": lambda good: good.replace(b"ACG", b"A!G"),
}

NUMBERS = {"text": "many", "blank": "", "a space": " ", "nan": "nan", "infinity": "inf"}
NUMBERS |= {"minus infinity": "-inf", "too large": "1e400", "5000 digits": "9" * 5000, "minus one": "-1"}
NUMBERS |= {"zero": "0", "hexadecimal": "0x10", "a comma": "0,5", "underscores": "1_0"}
NUMBERS |= {"Arabic digits": "\u0663", "two": "1 2", "a unit": "5%"}
ESCAPE = {"an escape": "\x1b[31mred"}
CHOICES = {"unknown": "nothing-like-it", "blank": "", "several": "a,b"}
WORDS = ESCAPE | {"unknown": "nothing-like-it", "blank": "", "a tab": "a\tb", "5000 letters": "x" * 5000}
NAMES = ESCAPE | {"blank": "", "a space": " ", "a tab": "a\tb", "a comment": "#a", "a quote": '"a'}
TEXTS = ESCAPE | {"a line break": "a\nb"}


# What is not bad for what takes it.
GOOD_ENOUGH = {
    "empty": {"settings"},
    "blank": {"settings"},
    "FASTA": {"sequences", "sequences of a class"},
    "twice": {"sequences of a class", "settings", "genes", "calls", "parts", "pretrain input"},
    "JSON": {"figures"},
}
ONLY_FOR = {
    "a wrong letter": {"sequences", "sequences of a class", "labeled table"},
    "a flipped bit": {"model", "shard"},
}
ZERO = "--threshold --prior --coverage --seed --precision --fdr --null-mb --max-ambiguous --shuffles "
ZERO += "--residual --keep --distance --max-overlap --identity --word --bootstrap --share --tolerance"
MAY_BE = {"zero": set(ZERO.split()), "minus one": {"evaluate --threshold"}}


@dataclass(frozen=True)
class Case:
    """A command line with one bad value, and the content of the file that it names, if one is made."""

    argument: Argument
    kind: str
    value: str
    content: bytes | None = None

    @property
    def is_quick(self) -> bool:
        """Whether it is one of those, a fifth, that every run of the tests tries."""
        return crc32(self.name.encode()) % 5 == 0

    @property
    def name(self) -> str:
        return f"{self.argument}: {self.kind}"

    def is_named_in(self, message: str) -> bool:
        """Whether a message names the argument, its value or its file."""
        names = (self.argument.name.strip("-"), self.argument.metavar)
        names += (SAID_AS.get(str(self.argument), ""),)
        words = (*names, self.value, os.path.basename(self.target), " ".join(self.value.split()))
        return any(escaped in message for word in words if len(word) > 1 for escaped in _escaped(word))

    @property
    def target(self) -> str:
        """The file that the value leads to: that of one strand for a track."""
        return self.value.replace(".bw", ".plus.bw") if self.argument.name == "--track" else self.value

    @property
    def source(self) -> str:
        """The first good file that the command reads."""
        words = (word.rpartition("=")[2] for word in self.words)
        return next(word for word in words if word in {*GOOD.values(), "promoter.fa", "alignments.sto"})

    @property
    def words(self) -> list[str]:
        """The command line, after ``seqray``."""
        argument, verb = self.argument, self.argument.verb
        template = WORKING.get(str(argument), WORKING[verb]).split()
        if any("@" in word for word in template):
            words = [word.replace("@", self.value) for word in template]
        elif argument.takes == "nothing":
            words = [*template, self.value]
        elif argument.name in template:
            at = template.index(argument.name)
            words = [*template[: at + 1], self.value, *template[at + 2 :]]
        elif argument.is_option:
            words = [*template, f"{argument.name}={self.value}"]
        else:
            words = [self.value, *template[1:]]
        return [*verb.split(), *words]


def _escaped(text: str) -> tuple[str, str]:
    """As a terminal gets it, and as it is quoted."""
    return escape_controls(text), repr(text)[1:-1]


def cases(good: Callable[[str], bytes]) -> Iterator[Case]:
    """Every argument with every kind of bad value for what it takes."""
    for argument in arguments():
        for kind, value, content in _values(argument, good):
            yield Case(argument, kind, value, content)


Bad = Iterator[tuple[str, str, bytes | None]]
"""Kind, value, and content of the file that the value names, if there is one to be made."""


def _values(argument: Argument, good: Callable[[str], bytes]) -> Bad:
    if argument.takes in GOOD:
        yield from _files(argument, good)
    else:
        table = PLAIN[argument.takes]
        values = table(argument) if callable(table) else table
        for kind, value in values.items():
            if not {argument.name, str(argument)} & MAY_BE.get(kind, set()):
                yield kind, value, None


def _files(argument: Argument, good: Callable[[str], bytes]) -> Bad:
    takes = argument.takes
    name = GOOD[takes]
    yield "missing", f"missing-{name}", None
    yield "a folder", "folder", None
    yield "unreadable", "/proc/self/mem", None
    yield "endless", "/dev/zero", None
    yield "an odd name", f"\x1b[31m\t\u2028\udcff-{name}", _NOISE
    for kind, change in CONTENTS.items():
        if not {takes, str(argument)} & GOOD_ENOUGH.get(kind, set()) and takes in ONLY_FOR.get(kind, {takes}):
            yield kind, f"bad-{name}", change(good(name))


def _outputs(argument: Argument) -> dict[str, str]:
    suffix = SUFFIXES.get(str(argument)) or SUFFIXES.get(argument.name, ".tsv")
    values = {
        "in no folder": f"missing/o{suffix}",
        "a folder": f"folder{suffix}",
        "a long name": "x" * 300 + suffix,
    }
    values |= {"below a file": f"table.tsv/o{suffix}", "an input": f"input{suffix}"}
    other = "o.tsv" if suffix == ".png" else "o.png"
    return values if argument.name in ANY_SUFFIX else values | {"another suffix": other}


PLAIN: dict[str, dict[str, str] | Callable[[Argument], dict[str, str]]] = {
    "nothing": lambda argument: {"a value": f"{argument.name}=x"},
    "output": _outputs,
    "folder": {"a file": "table.tsv"},
    "encoder": {"missing": "missing", "a file": "table.tsv", "a folder": "folder"},
    "number": NUMBERS,
    "choice": CHOICES,
    "word": WORDS,
    "class name": NAMES,
    "text": TEXTS,
}
SUFFIXES = {
    "--html": ".html",
    "--json": ".json",
    "--multiqc": "_mqc.json",
    "--track": ".bw",
    "--plot": ".png",
    "--motifs": ".meme",
    "--save-config": ".yaml",
    **dict.fromkeys(("pretrain --out", "train --out", "calibrate --out", "prefilter --out"), ".safetensors"),
    "export --out": ".onnx",
}
