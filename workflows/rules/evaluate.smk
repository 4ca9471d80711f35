rule seqray_evaluate:
    input:
        model="models/{name}.safetensors",
        table="splits/{name}.tsv",
    output:
        table="evaluations/{name}.tsv",
        page="evaluations/{name}.html",
    log:
        "logs/evaluate/{name}.log",
    benchmark:
        "benchmarks/evaluate/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 2
    params:
        extra="",
    shell:
        "seqray evaluate --model {input.model:q} --train {input.table:q} {params.extra} --threads {threads}"
        " --out {output.table:q} --html {output.page:q} > {log:q} 2>&1"
