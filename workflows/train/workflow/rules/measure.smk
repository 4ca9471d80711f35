# Evaluate each model on held-out sequences with a floor, compare it with the first configuration, and summarize.


rule evaluate:
    input:
        model=final_model,
        table=f"{OUTDIR}/{{set}}/split.tsv",
    output:
        table=f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/evaluation.tsv",
        json=f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/evaluation.json",
        page=report(
            f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/evaluation.html",
            caption="../report/evaluation.rst",
            category="Evaluation",
            labels={"set": "{set}", "config": "{config}", "seed": "{seed}"},
        ),
    log:
        f"{OUTDIR}/logs/evaluate/{{set}}/{{config}}/seed-{{seed}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/evaluate/{{set}}/{{config}}/seed-{{seed}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        options=config["options"]["evaluate"],
    shell:
        "seqray evaluate --model {input.model:q} --train {input.table:q} {params.options} --threads {threads}"
        " --out {output.table:q} --json {output.json:q} --html {output.page:q} > {log:q} 2>&1"


rule compare:
    input:
        model=final_model,
        reference=reference_model,
        table=f"{OUTDIR}/{{set}}/split.tsv",
    output:
        table=f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/comparison.tsv",
        page=report(
            f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/comparison.html",
            caption="../report/comparison.rst",
            category="Comparison",
            labels={"set": "{set}", "config": "{config}", "seed": "{seed}"},
        ),
    log:
        f"{OUTDIR}/logs/compare/{{set}}/{{config}}/seed-{{seed}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/compare/{{set}}/{{config}}/seed-{{seed}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        options=config["options"]["evaluate"],
    shell:
        "seqray evaluate --model {input.model:q} --against {input.reference:q} --train {input.table:q}"
        " {params.options} --threads {threads} --out {output.table:q} --html {output.page:q} > {log:q} 2>&1"


rule explain:
    input:
        model=final_model,
        sequences=explained_of,
    output:
        table=f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/explanations.tsv",
        checks=f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/explanations.faithfulness.tsv",
        page=report(
            f"{OUTDIR}/{{set}}/{{config}}/seed-{{seed}}/explanations.html",
            caption="../report/explanations.rst",
            category="Explanations",
            labels={"set": "{set}", "config": "{config}", "seed": "{seed}"},
        ),
    log:
        f"{OUTDIR}/logs/explain/{{set}}/{{config}}/seed-{{seed}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/explain/{{set}}/{{config}}/seed-{{seed}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        options=config["options"]["explain"],
    shell:
        "seqray explain {input.sequences:q} --model {input.model:q} {params.options} --threads {threads}"
        " --out {output.table:q} --faithfulness {output.checks:q} --html {output.page:q} > {log:q} 2>&1"


rule summary:
    input:
        expand(f"{RUN}/evaluation.tsv", set=SETS, config=CONFIGS, seed=SEEDS),
    output:
        table=f"{OUTDIR}/summary.tsv",
        page=report(
            f"{OUTDIR}/summary.html",
            caption="../report/summary.rst",
            category="Summary",
            labels={"set": "all"},
        ),
    log:
        f"{OUTDIR}/logs/summary.log",
    benchmark:
        f"{OUTDIR}/benchmarks/summary.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        named=named_tables,
    shell:
        "seqray summary {params.named:q} --out {output.table:q} --html {output.page:q}"
        " --title 'All models on held-out sequences' > {log:q} 2>&1"
