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


def prefilter_genomes(wildcards):
    """Genomes that a prefilter learns from."""
    names = PREFILTERS[wildcards.name]["genomes"]
    return [os.path.abspath(os.path.join(DATA, name)) for name in names]


def rna_options(wildcards, input):
    """Options for the labels, the figures of the card, and the checkpoints."""
    options = ["--alignment-labels", input.labels, "--metrics", input.figures]
    return shlex.join([*options, "--work-dir", f"{RUNS}/{RNA}"])


def locator_folds(wildcards):
    """The table of the models without some genera; an empty list where a locator has none."""
    if wildcards.name not in LOCATOR_FOLDS:
        return []
    return f"{RUNS}/folds/{wildcards.name}/folds.tsv"


def locator_start(wildcards):
    """The model that a locator begins with; an empty list without one."""
    name = STARTS.get(wildcards.name)
    return f"{ZOO}/{name}.safetensors" if name else []


def locator_options(wildcards, input):
    """Options for the folds and the model that a locator begins with."""
    numbers = range(1, LOCATOR_FOLDS.get(wildcards.name, 0) + 1)
    folder = f"{RUNS}/folds/{wildcards.name}"
    folds = [
        word for n in numbers for word in ("--fold", f"{folder}/fold-{n}.safetensors")
    ]
    return shlex.join([*folds, *(["--init", input.start] if input.start else [])])


def locator_fold_options(wildcards, input):
    """Options of the folds: their number, those of the configuration, and the model that they begin with."""
    more = config.get("locator_fold_options", {}).get(wildcards.name, "")
    start = ["--init", input.start] if input.start else []
    return f"--folds {LOCATOR_FOLDS[wildcards.name]} {more} {shlex.join(start)}"
