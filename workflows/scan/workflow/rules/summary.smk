# A row per sample and model, for each sample and for all; after a failure, list_failures writes that for all.


rule summary_of_sample:
    input:
        expand(f"{OUTDIR}/{{{{sample}}}}/{{model}}/calls.tsv", model=MODELS),
    output:
        table=f"{OUTDIR}/{{sample}}/summary.tsv",
        page=report(
            f"{OUTDIR}/{{sample}}/summary.html",
            caption="../report/summary.rst",
            category="Summary",
            labels={"sample": "{sample}"},
        ),
    log:
        f"{OUTDIR}/logs/summary/{{sample}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/summary/{{sample}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        named=lambda wildcards, input: [
            f"{wildcards.sample}={table}" for table in input
        ],
    shell:
        "seqray summary {params.named:q} --out {output.table:q} --html {output.page:q}"
        " --title 'Calls in {wildcards.sample}' > {log:q} 2>&1"


rule summary:
    input:
        expand(f"{OUTDIR}/{{sample}}/{{model}}/calls.tsv", sample=SAMPLES, model=MODELS),
    output:
        table=f"{OUTDIR}/summary.tsv",
        page=report(
            f"{OUTDIR}/summary.html",
            caption="../report/summary.rst",
            category="Summary",
            labels={"sample": "all"},
        ),
    log:
        f"{OUTDIR}/logs/summary.log",
    benchmark:
        f"{OUTDIR}/benchmarks/summary.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        named=lambda wildcards, input: [
            f"{sample}={table}"
            for sample, table in zip([s for s in SAMPLES for _ in MODELS], input)
        ],
    shell:
        "seqray summary {params.named:q} --out {output.table:q} --html {output.page:q}"
        " --title 'Calls in all samples' > {log:q} 2>&1"
