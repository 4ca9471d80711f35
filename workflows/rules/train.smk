rule seqray_train:
    input:
        table="splits/{name}.tsv",
        config="configs/{name}.yaml",
    output:
        "models/{name}.safetensors",
    log:
        "logs/train/{name}.log",
    benchmark:
        "benchmarks/train/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 4
    params:
        extra="",
    shell:
        "seqray train --config {input.config:q} --train {input.table:q} {params.extra} --threads {threads}"
        " --out {output:q} > {log:q} 2>&1"
