# Locators: mapped starts of many genomes, and the models that are trained on them.


rule genomes:
    input:
        f"{RUNS}/data/verified",
    output:
        expand(
            f"{RUNS}/data/genomes/{{sheet}}.tsv", sheet=sorted(set(LOCATORS.values()))
        ),
    log:
        f"{RUNS}/logs/prepare/genomes.log",
    benchmark:
        f"{RUNS}/benchmarks/prepare/genomes.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
        root=ROOT,
        out=lambda wildcards, output: os.path.dirname(output[0]),
    shell:
        "cd {params.root:q} && python data/prepare_genomes.py --data {params.data:q} --out {params.out:q} > {log:q} 2>&1"


rule locator_folds:
    """Models that have not seen some genera, to say what to expect in a new species."""
    input:
        config=f"{ROOT}/configs/{{name}}.yaml",
        sheet=lambda wildcards: f"{RUNS}/data/genomes/{LOCATORS[wildcards.name]}.tsv",
        start=locator_start,
    output:
        f"{RUNS}/folds/{{name}}/folds.tsv",
    log:
        f"{RUNS}/logs/folds/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/folds/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(LOCATOR_FOLDS),
    conda:
        "../envs/seqray.yaml"
    threads: config["threads"]
    params:
        root=ROOT,
        more=locator_fold_options,
        out=lambda wildcards, output: os.path.dirname(output[0]),
    shell:
        "cd {params.root:q} && python benchmarks/train_folds.py --sheet {input.sheet:q} --config {input.config:q} "
        "{params.more} --threads {threads} --out {params.out:q} --run > {log:q} 2>&1"


rule train_locator:
    input:
        config=f"{ROOT}/configs/{{name}}.yaml",
        sheet=lambda wildcards: f"{RUNS}/data/genomes/{LOCATORS[wildcards.name]}.tsv",
        folds=locator_folds,
        start=locator_start,
    output:
        f"{ZOO}/{{name}}.safetensors",
    log:
        f"{RUNS}/logs/train/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/train/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(LOCATORS),
    conda:
        "../envs/seqray.yaml"
    threads: config["threads"]
    params:
        work=f"{RUNS}/{{name}}",
        more=locator_options,
    shell:
        "seqray train --config {input.config:q} --sheet {input.sheet:q} {params.more} --threads {threads} "
        "--work-dir {params.work:q} --out {output:q} > {log:q} 2>&1"
