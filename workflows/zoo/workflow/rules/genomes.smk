# Locators: mapped starts of many genomes, and the models that are trained on them.


rule genomes:
    input:
        f"{RUNS}/data/verified",
    output:
        f"{RUNS}/data/genomes/train.tsv",
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


rule train_locator:
    input:
        config=f"{ROOT}/configs/{{name}}.yaml",
        sheet=lambda wildcards: f"{RUNS}/data/genomes/{LOCATORS[wildcards.name]}.tsv",
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
    shell:
        "seqray train --config {input.config:q} --sheet {input.sheet:q} --threads {threads} "
        "--work-dir {params.work:q} --out {output:q} > {log:q} 2>&1"
