# Values that the rules read from the configuration and from files.
import shlex


def teacher(wildcards):
    """Model file of the teacher; an empty list without one."""
    name = config.get("teachers", {}).get(wildcards.name)
    return f"{ZOO}/{name}.safetensors" if name else []


def train_options(wildcards):
    """Options for the checkpoints, the teacher, and the figures of the card if they were measured."""
    options = ["--work-dir", f"{RUNS}/{wildcards.name}"]
    if teacher(wildcards):
        options += ["--teacher", teacher(wildcards)]
    figures = RESULTS / f"{wildcards.name}.card.json"
    return shlex.join(
        [*options, *(["--metrics", str(figures)] if figures.exists() else [])]
    )


def rna_options(wildcards, input):
    """Options for the labels, the figures of the card, and the checkpoints."""
    options = ["--alignment-labels", input.labels, "--metrics", input.figures]
    return shlex.join([*options, "--work-dir", f"{RUNS}/{RNA}"])
