# Reads and checks the configuration and the sheet; the rules are in scan.smk.
import csv
import re
from pathlib import Path

from snakemake.exceptions import WorkflowError

for section in ("scan", "explain", "resources"):
    if config.get(section) is None:  # a YAML section with nothing below it
        config[section] = {}

# Once without defaults: filling them in fails on a section of the wrong type before it can be reported.
validate(config, schema="../schemas/config.schema.yaml", set_default=False)
validate(config, schema="../schemas/config.schema.yaml")


NAME = r"[A-Za-z0-9._-]+"


def read_samples(path):
    """Rows of the sheet by the name of the sample, each checked against the schema."""
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            lines = (
                line for line in handle if line.strip() and not line.startswith("#")
            )
            rows = list(
                csv.DictReader(lines, delimiter="\t", restkey="beyond the header")
            )
    except OSError as error:
        raise WorkflowError(f"{path}: the sheet can't be read ({error.strerror})")
    samples = {}
    for row in rows:
        row = {column: cell for column, cell in row.items() if cell}
        validate(row, schema="../schemas/samples.schema.yaml")
        if row["sample"] in samples:
            raise WorkflowError(f"{path}: the sample '{row['sample']}' has two rows")
        samples[row["sample"]] = row
    if not samples:
        raise WorkflowError(f"{path}: the sheet has no rows")
    return samples


def read_models(models):
    """Models by the name of their results: a shipped model's own, or a file's without folder and end."""
    named = {
        Path(str(model)).name.removesuffix(".safetensors"): model for model in models
    }
    for name, model in named.items():
        if not re.fullmatch(NAME, name) or name in (".", ".."):
            raise WorkflowError(
                f"the model '{model}' can't name results: rename its file to letters, digits, '.', '_' and '-'"
            )
    if len(named) < len(models):
        raise WorkflowError("two models of the configuration have the same name")
    return named


SAMPLES = read_samples(config["samples"])
MODELS = read_models(config["models"])
OUTDIR = config["outdir"]
TRACK = {"none": None, "bedgraph": "bedgraph", "bigwig": "bw"}[config["scan"]["track"]]
EXPLANATIONS = expand(
    f"{OUTDIR}/{{sample}}/{{model}}/explanations.html",
    sample=SAMPLES if config["explain"]["calls"] else [],
    model=MODELS,
)


wildcard_constraints:
    sample=NAME,
    model=NAME,


def model_file(wildcards):
    """The model as an input, where it's a file; a shipped one comes with the program."""
    model = MODELS[wildcards.model]
    return [model] if Path(model).suffix == ".safetensors" else []


def model_name(wildcards):
    return MODELS[wildcards.model]


def sequences(wildcards):
    return SAMPLES[wildcards.sample]["fasta"]


def track_files():
    """The files that one --track option writes."""
    name = f"{OUTDIR}/{{sample}}/{{model}}/score"
    return [f"{name}.{strand}.{TRACK}" for strand in ("plus", "minus")] if TRACK else []


def track_option(wildcards):
    """Words of the command, none where no track is asked for."""
    folder = f"{OUTDIR}/{wildcards.sample}/{wildcards.model}"
    return ["--track", f"{folder}/score.{TRACK}"] if TRACK else []


def empty_option():
    return "--allow-empty" if config["scan"]["allow_empty"] else ""


def scan_options(wildcards):
    """Options of the scan that differ from the defaults, in the order of the configuration."""
    settings = config["scan"]
    options = [f"--stride {settings['stride']}"]
    for name in ("threshold", "fdr"):
        if settings[name] is not None:
            options.append(f"--{name} {settings[name]}")
    if SAMPLES[wildcards.sample]["circular"] == "yes":
        options.append("--circular")
    return " ".join([*options, empty_option()]).strip()


def share(wildcards):
    """Which shard of how many: 2-of-8 is written 2/8 by seqray."""
    return wildcards.scatteritem.replace("-of-", "/")
