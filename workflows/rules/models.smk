rule seqray_models:
    input:
        model="models/{name}.safetensors",
    output:
        "cards/{name}.txt",
    log:
        "logs/models/{name}.log",
    benchmark:
        "benchmarks/models/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 1
    params:
        extra="",
    shell:
        "seqray models show {input.model:q} {params.extra} > {output:q} 2> {log:q}"
