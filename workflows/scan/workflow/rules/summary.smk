rule summary:
    input:
        tables=expand(f"{OUTDIR}/{{sample}}/calls.tsv", sample=SAMPLES),
    output:
        summary=f"{OUTDIR}/summary.tsv",
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
        samples=list(SAMPLES),
    script:
        "../scripts/summarize.py"
