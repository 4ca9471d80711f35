rule seqray_scan_shard:
    input:
        sequences="sequences/{name}.fa",
    output:
        temp("shards/{name}/{number}-of-{total}.shard"),
    log:
        "logs/scan_shard/{name}.{number}-of-{total}.log",
    benchmark:
        "benchmarks/scan_shard/{name}.{number}-of-{total}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 2
    params:
        model="bacteria-genome",  # a shipped model or a model file
        extra="",
    shell:
        "seqray scan {input.sequences:q} --model {params.model:q} {params.extra} --threads {threads}"
        " --shard {wildcards.number}/{wildcards.total} --out {output:q} > {log:q} 2>&1"
