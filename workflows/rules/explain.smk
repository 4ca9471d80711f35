rule seqray_explain:
    input:
        sequences="sequences/{name}.fa",
        calls="calls/{name}.gff3",
    output:
        table="explanations/{name}.tsv",
        checks="explanations/{name}.faithfulness.tsv",
        page="explanations/{name}.html",
    log:
        "logs/explain/{name}.log",
    benchmark:
        "benchmarks/explain/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 4
    params:
        model="ecoli-promoter",  # a shipped model or a model file
        extra="",
    shell:
        "seqray explain {input.sequences:q} --calls {input.calls:q} --model {params.model:q} {params.extra}"
        " --threads {threads} --out {output.table:q} --html {output.page:q} > {log:q} 2>&1"
