rule seqray_audit:
    input:
        table="labelled/{name}.tsv",
    output:
        table="audits/{name}.tsv",
        page="audits/{name}.html",
    log:
        "logs/audit/{name}.log",
    benchmark:
        "benchmarks/audit/{name}.tsv"
    conda:
        workflow.source_path("envs/seqray.yaml")
    threads: 1
    params:
        extra="",
    shell:
        "seqray audit {input.table:q} {params.extra} --out {output.table:q} --html {output.page:q} > {log:q} 2>&1"
