# Tables, trainings, cross-validations, and the table of accuracy.


rule verify:
    output:
        touch(f"{RUNS}/data/verified"),
    log:
        f"{RUNS}/logs/verify.log",
    benchmark:
        f"{RUNS}/benchmarks/verify.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
        root=ROOT,
    shell:
        "cd {params.root:q} && SEQRAY_DATA={params.data:q} python data/verify.py > {log:q} 2>&1"


rule prepare:
    input:
        f"{RUNS}/data/verified",
    output:
        f"{RUNS}/data/{{name}}.tsv.gz",
    log:
        f"{RUNS}/logs/prepare/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/prepare/{{name}}.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
        root=ROOT,
    shell:
        "cd {params.root:q} && python data/prepare.py {wildcards.name:q} --data {params.data:q} --out {output:q} > {log:q} 2>&1"


# The rule from workflows/rules, which any workflow can reuse.
module verbs:
    snakefile:
        "../../../rules/train.smk"


use rule seqray_train from verbs as train with:
    input:
        config=f"{ROOT}/configs/{{name}}.yaml",
        table=lambda wildcards: f"{RUNS}/data/{MODELS[wildcards.name]}.tsv.gz",
        teacher=teacher,
    output:
        f"{ZOO}/{{name}}.safetensors",
    log:
        f"{RUNS}/logs/train/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/train/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(sorted(MODELS.keys() - PREFILTERS.keys())),
    threads: config["threads"]
    params:
        extra=train_options,


use rule train as train_before_prefilter with:
    output:
        f"{RUNS}/models/{{name}}.safetensors",
    wildcard_constraints:
        name="|".join(PREFILTERS) or "-",


rule prefilter:
    """The same model, with networks ahead of it that make scans faster."""
    input:
        verified=f"{RUNS}/data/verified",
        model=f"{RUNS}/models/{{name}}.safetensors",
    output:
        f"{RUNS}/prefilters/{{name}}.safetensors",
    log:
        f"{RUNS}/logs/prefilter/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/prefilter/{{name}}.tsv"
    wildcard_constraints:
        name="|".join(PREFILTERS) or "-",
    conda:
        "../envs/seqray.yaml"
    threads: config["threads"]
    params:
        genomes=prefilter_genomes,
        extra=lambda wildcards: PREFILTERS[wildcards.name]["options"],
    shell:
        "seqray prefilter {input.model:q} {params.genomes:q} {params.extra} --threads {threads} --out {output:q} > {log:q} 2>&1"


use rule prefilter as measure_prefilter with:
    input:
        verified=f"{RUNS}/data/verified",
        model=f"{RUNS}/prefilters/{{name}}.safetensors",
    output:
        f"{ZOO}/{{name}}.safetensors",
    log:
        f"{RUNS}/logs/measure_prefilter/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/measure_prefilter/{{name}}.tsv"
    params:
        genomes=prefilter_genomes,
        extra=lambda wildcards: f"--measure-only {PREFILTERS[wildcards.name]['measure']}",


rule cross_validate:
    input:
        config=lambda wildcards: f"{ROOT}/configs/{FOLDS[wildcards.name]}.yaml",
        table=f"{RUNS}/data/{{name}}.tsv.gz",
    output:
        f"{RESULTS}/cv_{{name}}.tsv",
    log:
        f"{RUNS}/logs/cross_validate/{{name}}.log",
    benchmark:
        f"{RUNS}/benchmarks/cross_validate/{{name}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["threads"]
    params:
        work=f"{RUNS}/cv/{{name}}",
        root=ROOT,
        extra=lambda wildcards: config.get("fold_options", {}).get(wildcards.name, ""),
    shell:
        "cd {params.root:q} && python benchmarks/cross_validation.py --config {input.config:q} --train {input.table:q} "
        "--jobs {threads} {params.extra} --work-dir {params.work:q} --out {output:q} > {log:q} 2>&1"


rule held_out_genera:
    input:
        config=f"{ROOT}/configs/bacteria-promoter.yaml",
        table=f"{RUNS}/data/bacteria.tsv.gz",
    output:
        f"{RESULTS}/held_out_genera.tsv",
    log:
        f"{RUNS}/logs/held_out_genera.log",
    benchmark:
        f"{RUNS}/benchmarks/held_out_genera.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        root=ROOT,
    shell:
        "cd {params.root:q} && python benchmarks/held_out_genera.py --parts 4 --set model.d_model=64 model.d_ff=128 "
        "model.layers=2 trainer.max_epochs=3 augment.shift=0 --out {output:q} > {log:q} 2>&1"


rule accuracy:
    input:
        f"{RESULTS}/held_out_genera.tsv",
        expand(f"{ZOO}/{{name}}.safetensors", name=MODELS),
        expand(f"{RESULTS}/cv_{{name}}.tsv", name=FOLDS),
        expand(f"{RUNS}/data/{{name}}.tsv.gz", name=config["scored"]),
        f"{RESULTS}/rna_type.tsv",
        f"{RESULTS}/contacts.tsv",
    output:
        table=f"{RESULTS}/accuracy.tsv",
        page=ROOT / "docs/accuracy.md",
    log:
        f"{RUNS}/logs/accuracy.log",
    benchmark:
        f"{RUNS}/benchmarks/accuracy.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["threads"]
    params:
        root=ROOT,
    shell:
        "cd {params.root:q} && (python benchmarks/accuracy.py --out {output.table:q} && python benchmarks/accuracy_page.py) > {log:q} 2>&1"
