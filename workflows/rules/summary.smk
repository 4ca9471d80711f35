rule seqray_summary:
    input:
        "calls/{name}.tsv",
    output:
        table="summaries/{name}.tsv",
        page="summaries/{name}.html",
    log:
        "logs/summary/{name}.log",
    benchmark:
        "benchmarks/summary/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 1
    params:
        extra="",
    shell:
        "seqray summary {wildcards.name}={input:q} {params.extra} --out {output.table:q} --html {output.page:q}"
        " > {log:q} 2>&1"
