rule seqray_split:
    input:
        table="labelled/{name}.tsv",
    output:
        table="splits/{name}.tsv",
        proof="splits/{name}.proof.tsv",
    log:
        "logs/split/{name}.log",
    benchmark:
        "benchmarks/split/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 1
    params:
        extra="",
    shell:
        "seqray split {input.table:q} {params.extra} --out {output.table:q} --proof {output.proof:q} > {log:q} 2>&1"
