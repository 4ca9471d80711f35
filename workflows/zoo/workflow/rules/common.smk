# What the rules take from the configuration and from files.
import shlex


def teacher(wildcards):
    """The model file that a model is distilled from; an empty list for most."""
    name = config.get("teachers", {}).get(wildcards.name)
    return f"{ZOO}/{name}.safetensors" if name else []


def train_options(wildcards):
    """Where the checkpoints are, the teacher, and the figures for the card, where they were measured."""
    options = ["--work-dir", f"{RUNS}/{wildcards.name}"]
    if teacher(wildcards):
        options += ["--teacher", teacher(wildcards)]
    figures = RESULTS / f"{wildcards.name}.card.json"
    return shlex.join(
        [*options, *(["--metrics", str(figures)] if figures.exists() else [])]
    )


def rna_options(wildcards, input):
    """Labels, figures for the card, and where the checkpoints are."""
    options = ["--alignment-labels", input.labels, "--metrics", input.figures]
    return shlex.join([*options, "--work-dir", f"{RUNS}/{RNA}"])
