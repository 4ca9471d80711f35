rule seqray_calibrate:
    input:
        model="models/{name}.safetensors",
        table="held_out/{name}.tsv",
    output:
        "calibrated/{name}.safetensors",
    log:
        "logs/calibrate/{name}.log",
    benchmark:
        "benchmarks/calibrate/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 2
    params:
        extra="",
    shell:
        "seqray calibrate {input.model:q} --validation {input.table:q} {params.extra} --threads {threads}"
        " --out {output:q} > {log:q} 2>&1"
