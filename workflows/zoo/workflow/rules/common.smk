# Values that the rules read from the configuration and from files.
import shlex

LOCATOR_FOLDS = range(1, 5)


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


def prefilter_genomes(wildcards):
    """Genomes that a prefilter learns from."""
    names = PREFILTERS[wildcards.name]["genomes"]
    return [os.path.abspath(os.path.join(DATA, name)) for name in names]


def rna_options(wildcards, input):
    """Options for the labels, the figures of the card, and the checkpoints."""
    options = ["--alignment-labels", input.labels, "--metrics", input.figures]
    return shlex.join([*options, "--work-dir", f"{RUNS}/{RNA}"])


def locator_folds(wildcards):
    """Models without some genera; a specialized locator says nothing of new species."""
    if wildcards.name in STARTS:
        return []
    folder = f"{RUNS}/folds/{wildcards.name}"
    return [f"{folder}/fold-{n}.safetensors" for n in LOCATOR_FOLDS]


def locator_start(wildcards):
    """The model that a locator begins with; an empty list without one."""
    name = STARTS.get(wildcards.name)
    return f"{ZOO}/{name}.safetensors" if name else []


def locator_options(wildcards, input):
    """Options for the folds and the model that a locator begins with."""
    folds = [word for path in input.folds for word in ("--fold", path)]
    return shlex.join([*folds, *(["--init", input.start] if input.start else [])])
