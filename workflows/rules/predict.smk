rule seqray_predict:
    input:
        sequences="sequences/{name}.fa",
    output:
        "predictions/{name}.tsv",
    log:
        "logs/predict/{name}.log",
    benchmark:
        "benchmarks/predict/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 4
    params:
        model="ecoli-promoter",  # a shipped model or a model file
        extra="",
    shell:
        "seqray predict {input.sequences:q} --model {params.model:q} {params.extra} --threads {threads}"
        " --out {output:q} > {log:q} 2>&1"
