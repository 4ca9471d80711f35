rule seqray_scan:
    input:
        sequences="sequences/{name}.fa",
    output:
        gff3="calls/{name}.gff3",
        tsv="calls/{name}.tsv",
    log:
        "logs/scan/{name}.log",
    benchmark:
        "benchmarks/scan/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 4
    params:
        model="bacteria-genome",  # a shipped model or a model file
        extra="",
    shell:
        "seqray scan {input.sequences:q} --model {params.model:q} {params.extra} --threads {threads}"
        " --out {output.gff3:q} --out {output.tsv:q} > {log:q} 2>&1"
