# Make a model file for each set, configuration and seed, and its card.


rule train:
    input:
        table=f"{OUTDIR}/{{set}}/split.tsv",
        config=lambda wildcards: CONFIGS[wildcards.config],
    output:
        f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/model.safetensors",
    log:
        f"{OUTDIR}/logs/train/{{set}}/{{config}}/seed-{{seed}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/train/{{set}}/{{config}}/seed-{{seed}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        work=f"{OUTDIR}/checkpoints/{{set}}/{{config}}/seed-{{seed}}",
        options=config["options"]["train"],
    shell:
        "seqray train --config {input.config:q} --train {input.table:q} --seed {wildcards.seed} --threads {threads}"
        " {params.options} --work-dir {params.work:q} --restart-if-changed --out {output:q} > {log:q} 2>&1"


rule calibrate:
    input:
        model=f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/model.safetensors",
        table=calibration_of,
    output:
        f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/calibrated.safetensors",
    log:
        f"{OUTDIR}/logs/calibrate/{{set}}/{{config}}/seed-{{seed}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/calibrate/{{set}}/{{config}}/seed-{{seed}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        options=config["options"]["calibrate"],
    shell:
        "seqray calibrate {input.model:q} --validation {input.table:q} {params.options} --threads {threads}"
        " --out {output:q} > {log:q} 2>&1"


rule card:
    input:
        final_model,
    output:
        report(
            f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/card.txt",
            caption="../report/card.rst",
            category="Models",
            labels={"set": "{set}", "config": "{config}", "seed": "{seed}"},
        ),
    log:
        f"{OUTDIR}/logs/card/{{set}}/{{config}}/seed-{{seed}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/card/{{set}}/{{config}}/seed-{{seed}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    shell:
        "seqray models show {input:q} --full > {output:q} 2> {log:q}"
