rule seqray_negatives:
    input:
        positives="positives/{name}.fa",
    output:
        "labelled/{name}.tsv",
    log:
        "logs/negatives/{name}.log",
    benchmark:
        "benchmarks/negatives/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 1
    params:
        recipe="shuffle",
        extra="",
    shell:
        "seqray negatives {input.positives:q} --recipe {params.recipe} {params.extra} --out {output:q} > {log:q} 2>&1"
