rule seqray_gather:
    input:
        expand("shards/{{name}}/{number}-of-4.shard", number=range(1, 5)),
    output:
        gff3="gathered/{name}.gff3",
        tsv="gathered/{name}.tsv",
    log:
        "logs/gather/{name}.log",
    benchmark:
        "benchmarks/gather/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 1
    params:
        extra="",
    shell:
        "seqray gather {input:q} {params.extra} --out {output.gff3:q} --out {output.tsv:q} > {log:q} 2>&1"
