# Read and check the configuration and the sheet; the rules are in scan.smk.
import csv
import os
import re
import subprocess
from pathlib import Path

from snakemake.exceptions import WorkflowError

for section in ("scan", "explain", "resources"):
    if config.get(section) is None:  # an empty YAML section
        config[section] = {}

# First without defaults: on a section of the wrong type, filling them in fails before the error is reported.
validate(config, schema="../schemas/config.schema.yaml", set_default=False)
validate(config, schema="../schemas/config.schema.yaml")
if None not in (config["scan"]["threshold"], config["scan"]["fdr"]):
    raise WorkflowError("scan: threshold and fdr can't both be set")


NAME = r"[A-Za-z0-9._-]+"

# The files that the settings name must be there, unless the rules of a workflow around this one, or a storage, may give them.
ALONE = (
    len(workflow.included_stack) == 2  # the Snakefile, and this file
    and workflow.storage_settings.default_storage_provider is None
)


def check_file(path, place):
    if ALONE and not Path(path).exists():
        raise WorkflowError(f"{place}: {path}: no such file")


def read_rows(path):
    """Rows of the sheet, each after the number of its line."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as handle:
            lines = [
                (number, line)
                for number, line in enumerate(handle, start=1)
                if line.strip() and not line.startswith("#")
            ]
        texts = (line for _, line in lines)
        rows = list(csv.DictReader(texts, delimiter="\t", restkey="beyond the header"))
    except OSError as error:
        raise WorkflowError(f"{path}: the sheet can't be read ({error.strerror})")
    except (UnicodeDecodeError, csv.Error):
        raise WorkflowError(f"{path}: the sheet is not text in UTF-8")
    if rows and "sample" not in rows[0]:
        raise WorkflowError(
            f"{path}: line {lines[0][0]}: no column 'sample'; separate the columns by tabs"
        )
    return zip((number for number, _ in lines[1:]), rows)


def check_row(path, number, row):
    """Check a row against the schema, fill in defaults, and look for its files."""
    place = f"{path}: line {number}: sample '{row.get('sample', '')}'"
    try:
        validate(row, schema="../schemas/samples.schema.yaml")
    except WorkflowError as error:
        fault = error.__context__  # which names neither the sheet nor the line
        column = "".join(f"column '{name}': " for name in fault.path)
        raise WorkflowError(f"{place}: {column}{fault.message}") from None
    for column in ("fasta", "genes"):
        if column in row:
            check_file(row[column], place)


def read_samples(path):
    """Rows of the sheet by sample name, checked against the schema."""
    samples = {}
    for number, row in read_rows(path):
        row = {column: cell for column, cell in row.items() if cell}
        check_row(path, number, row)
        if row["sample"] in samples:
            raise WorkflowError(
                f"{path}: line {number}: the sample '{row['sample']}' has two rows"
            )
        samples[row["sample"]] = row
    if not samples:
        raise WorkflowError(f"{path}: the sheet has no rows")
    return samples


def check_model(model, options):
    """Raise for a name that no shipped model has, and for options of scans that the model does not take.

    Nothing is known where only the jobs have seqray, or of a model file that another rule makes.
    """
    if Path(model).suffix == ".safetensors":
        check_file(model, "models")
    try:
        from seqray.core.errors import SeqrayError
        from seqray.modelfile.header import locate_model, read_card
        from seqray.scanning.options import ONLY_FOR, other_kind
    except ModuleNotFoundError as error:
        if error.name != "seqray":
            raise
        return
    if Path(model).suffix == ".safetensors" and not Path(model).is_file():
        return
    try:
        card = read_card(locate_model(model))
    except SeqrayError as error:
        raise WorkflowError(f"models, scan: {error}") from None
    other, said = other_kind(card)
    for option in options:
        if ONLY_FOR.get(option.removeprefix("--").replace("-", "_")) == other:
            raise WorkflowError(f"models, scan: {option} {said}")


def read_models(models):
    """Models by the name of their results: the shipped name, or the file name without folder and suffix."""
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
    for name, model in named.items():
        check_model(model, [*shared_options(name), *extra_names("scan", name)])
    return named


CHOOSING = {"--threshold", "--fdr", "--precision", "--per-kb"}
SET_BY_WORKFLOW = {
    "scan": "-m --model -o --out --genes-out --html --track --format --skipped --shard --stride --threads --allow-empty",
    "explain": "-m --model -o --out --html --faithfulness --calls --best-calls --method --threads --allow-empty",
}


def extra_names(section, model):
    """Names of the further options of a model, without their values."""
    words = map(str, config[section]["extra"].get(model, []))
    return [
        word.partition("=")[0] if word.startswith("--") else word[:2]
        for word in words
        if word.startswith("-")
    ]


def shared_options(model):
    """Options of the scan that the configuration sets for all models.

    A model whose further options choose its calls gets no threshold and no FDR.
    """
    chosen = CHOOSING & set(extra_names("scan", model))
    names = ("stride",) if chosen else ("stride", "threshold", "fdr")
    return [f"--{name}" for name in names if config["scan"][name] is not None]


def check_extra(section):
    """Raise for further options that would be used nowhere, and for those that the workflow sets itself."""
    for model in config[section]["extra"]:
        if model not in MODELS:
            raise WorkflowError(
                f"{section}.extra: '{model}' names none of the models: {', '.join(MODELS)}"
            )
        for name in extra_names(section, model):
            if name in SET_BY_WORKFLOW[section].split():
                raise WorkflowError(
                    f"{section}.extra: '{name}' is set by the workflow; '{model}' can't have it here"
                )


def is_for_genomes(model):
    """Whether a model is for genomes and so takes genes and a species, as far as it is known here."""
    try:
        from seqray.modelfile.header import locate_model, read_card
    except ModuleNotFoundError:
        return True
    name = MODELS[model]
    if Path(name).suffix == ".safetensors" and not Path(name).is_file():
        return True
    return read_card(locate_model(name)).model.is_locator


def check_genes_table():
    """Raise for a table of genes from a model that reads none."""
    for model in MODELS:
        if config["scan"]["genes_table"] and not is_for_genomes(model):
            raise WorkflowError(
                f"models, scan.genes_table: '{model}' is a model of windows; a table of genes is for models for genomes"
            )


SAMPLES = read_samples(config["samples"])
MODELS = read_models(config["models"])
check_extra("scan")
check_extra("explain")
check_genes_table()
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
    """The model file as an input; empty for a shipped model, which is part of seqray."""
    model = MODELS[wildcards.model]
    return [model] if Path(model).suffix == ".safetensors" else []


def model_name(wildcards):
    return MODELS[wildcards.model]


def genes_file(wildcards):
    """The file of genes of a sample, if its row names one and the model reads genes."""
    genes = SAMPLES[wildcards.sample].get("genes")
    return [genes] if genes and is_for_genomes(wildcards.model) else []


def sequences(wildcards):
    return SAMPLES[wildcards.sample]["fasta"]


def track_files():
    """Files that one --track option writes."""
    name = f"{OUTDIR}/{{sample}}/{{model}}/score"
    return [f"{name}.{strand}.{TRACK}" for strand in ("plus", "minus")] if TRACK else []


def track_option(wildcards):
    """Command-line option for the track; empty without a track."""
    folder = f"{OUTDIR}/{wildcards.sample}/{wildcards.model}"
    return ["--track", f"{folder}/score.{TRACK}"] if TRACK else []


def page_file():
    """The page of the calls, if there is one."""
    page = report(
        f"{OUTDIR}/{{sample}}/{{model}}/calls.html",
        caption="../report/calls_page.rst",
        category="Calls",
        labels={"sample": "{sample}", "model": "{model}", "file": "page"},
    )
    return [page] if config["scan"]["html"] else []


def genes_option(wildcards):
    genes = f"{OUTDIR}/{wildcards.sample}/{wildcards.model}/genes.tsv"
    return ["--genes-out", genes] if config["scan"]["genes_table"] else []


def page_option(wildcards):
    page = f"{OUTDIR}/{wildcards.sample}/{wildcards.model}/calls.html"
    return ["--html", page] if config["scan"]["html"] else []


def extra_options(section, wildcards):
    """Words that the configuration adds for a model; {sample} in them stands for the sample."""
    words = config[section]["extra"].get(wildcards.model, [])
    return [str(word).replace("{sample}", wildcards.sample) for word in words]


def scan_options(wildcards):
    """Options of the scan that differ from the defaults, in the order of the configuration."""
    settings = config["scan"]
    options = []
    for name in shared_options(wildcards.model):
        options += [name, settings[name.removeprefix("--")]]
    if SAMPLES[wildcards.sample]["circular"] == "yes":
        options.append("--circular")
    if settings["allow_empty"]:
        options.append("--allow-empty")
    for genes in genes_file(wildcards):
        options += ["--genes", genes]
    species = SAMPLES[wildcards.sample].get("species")
    if species and is_for_genomes(wildcards.model):
        options += ["--species", species]
    return options + extra_options("scan", wildcards)


def explain_options(wildcards):
    options = [word for genes in genes_file(wildcards) for word in ("--genes", genes)]
    return options + extra_options("explain", wildcards)


def share(wildcards):
    """Shard number and count: 2-of-8 in Snakemake is 2/8 in seqray."""
    return wildcards.scatteritem.replace("-of-", "/")


def why_failed(sample, model):
    """The error in the logs of a scan that has no result."""
    folder = Path(OUTDIR, "logs", "scan", sample, model)
    for log in [
        *sorted(folder.glob("*.log")),
        Path(OUTDIR, "logs", "gather", sample, f"{model}.log"),
    ]:
        text = (
            log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        )
        errors = re.findall("^seqray: (error: .+|terminated|interrupted)$", text, re.M)
        if errors:
            return " ".join(errors[-1].removeprefix("error: ").split())
    return f"was not run, or ended without an error in {folder}"


def list_failures():
    """After a failure: the summary of the scans that are done, with a row for each that failed or was not run.

    Files of an earlier run do not count: they are of another input, and go, so that the next run makes them anew.
    The summary gets an old date to the same end.
    """
    left = set()
    for job in workflow.dag.needrun_jobs():
        if job.rule.name == "gather":
            left.add(tuple(job.wildcards))
        for path in job.output if job.rule.name != "summary" else ():
            Path(path).unlink(missing_ok=True)
    words, failed, summary = [], [], f"{OUTDIR}/summary"
    for sample in SAMPLES:
        for model in MODELS:
            done = (sample, model) not in left
            table = f"{sample}={OUTDIR}/{sample}/{model}/calls.tsv"
            if done:
                words.append(table)
            else:
                why = why_failed(sample, model)
                failed += ["--failed", f"{sample}={model}={why}"]
    words += [*failed, "--out", f"{summary}.tsv", "--html", f"{summary}.html"]
    subprocess.run(
        ["seqray", "summary", *words, "--title", "Calls in all samples"], check=True
    )
    for ending in ("tsv", "html"):
        os.utime(f"{summary}.{ending}", (0, 0))
