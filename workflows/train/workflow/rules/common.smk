# Read and check the configuration and the sheet of labeled sets.
import csv
from pathlib import Path

from snakemake.exceptions import WorkflowError

for section in ("options", "resources"):
    if config.get(section) is None:  # an empty YAML section
        config[section] = {}

# First without defaults: on a section of the wrong type, filling them in fails before the error is reported.
validate(config, schema="../schemas/config.schema.yaml", set_default=False)
validate(config, schema="../schemas/config.schema.yaml")


# The files that the settings name must be there, unless the rules of a workflow around this one, or a storage, may give them.
ALONE = (
    len(workflow.included_stack) == 2  # the Snakefile, and this file
    and workflow.storage_settings.default_storage_provider is None
)


def check_file(path, place):
    if ALONE and not Path(path).exists():
        raise WorkflowError(f"{place}: {path}: no such file")


def check_row(path, number, row):
    """Check a row against the schema, and look for its files."""
    place = f"{path}: line {number}: set '{row.get('set', '')}'"
    try:
        validate(row, schema="../schemas/sets.schema.yaml")
    except WorkflowError as error:
        fault = error.__context__  # which names neither the sheet nor the line
        column = "".join(f"column '{name}': " for name in fault.path)
        raise WorkflowError(f"{place}: {column}{fault.message}") from None
    for column in ("table", "calibrate", "explain"):
        if column in row:
            check_file(row[column], place)


def read_sets(path):
    """Rows of the sheet by set name, checked against the schema."""
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
    sets = {}
    for (number, _), row in zip(lines[1:], rows):
        row = {column: cell for column, cell in row.items() if cell}
        check_row(path, number, row)
        if row["set"] in sets:
            raise WorkflowError(
                f"{path}: line {number}: the set '{row['set']}' has two rows"
            )
        sets[row["set"]] = row
    if not sets:
        raise WorkflowError(f"{path}: the sheet has no rows")
    return sets


SETS = read_sets(config["sets"])
CONFIGS = config["configs"]
for name, settings in CONFIGS.items():
    check_file(settings, f"configs: '{name}'")
SEEDS = config["seeds"]
OUTDIR = config["outdir"]
RUN = f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}"
REFERENCE = next(iter(CONFIGS))

EXPLANATIONS = expand(
    f"{RUN}/explanations.html",
    set=[name for name, row in SETS.items() if "explain" in row],
    config=CONFIGS,
    seed=SEEDS,
)
COMPARISONS = expand(
    f"{RUN}/comparison.html",
    set=SETS,
    config=[name for name in CONFIGS if name != REFERENCE],
    seed=SEEDS,
)


wildcard_constraints:
    set=r"[A-Za-z0-9._-]+",
    config=r"[A-Za-z0-9._-]+",
    seed=r"\d+",


def table_of(wildcards):
    return SETS[wildcards.set]["table"]


def calibration_of(wildcards):
    return SETS[wildcards.set].get("calibrate", [])


def explained_of(wildcards):
    return SETS[wildcards.set]["explain"]


def model_path(name, of, seed):
    """The calibrated model if the set has sequences for calibration, else the trained model."""
    file = "calibrated" if "calibrate" in SETS[name] else "model"
    return f"{OUTDIR}/{name}/{of}/seed-{seed}/{file}.safetensors"


def final_model(wildcards):
    return model_path(wildcards.set, wildcards.config, wildcards.seed)


def reference_model(wildcards):
    return model_path(wildcards.set, REFERENCE, wildcards.seed)


def named_tables(wildcards, input):
    """Each table with its row name: set, configuration and seed."""
    return [f"{Path(*Path(table).parts[-4:-1])}={table}" for table in input]
