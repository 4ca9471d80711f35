# What the rules take from the configuration and from files.


def train_options(wildcards):
    """Where the checkpoints are, and the figures for the card, where they were measured."""
    options = f"--work-dir {RUNS}/{wildcards.name}"
    figures = RESULTS / f"{wildcards.name}.card.json"
    return f"{options} --metrics {figures}" if figures.exists() else options
