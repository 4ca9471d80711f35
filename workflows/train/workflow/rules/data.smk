# Find problems of the data, and split them without separating relatives.


rule audit:
    input:
        table_of,
    output:
        table=f"{OUTDIR}/{{set}}/audit.tsv",
        page=report(
            f"{OUTDIR}/{{set}}/audit.html",
            caption="../report/audit.rst",
            category="Data",
            labels={"set": "{set}"},
        ),
    log:
        f"{OUTDIR}/logs/audit/{{set}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/audit/{{set}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        options=config["options"]["audit"],
    shell:
        "seqray audit {input:q} {params.options} --out {output.table:q} --html {output.page:q} > {log:q} 2>&1"


rule split:
    input:
        table_of,
    output:
        table=f"{OUTDIR}/{{set}}/split.tsv",
        proof=report(
            f"{OUTDIR}/{{set}}/split.proof.tsv",
            caption="../report/split.rst",
            category="Data",
            labels={"set": "{set}"},
        ),
    log:
        f"{OUTDIR}/logs/split/{{set}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/split/{{set}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        options=config["options"]["split"],
    shell:
        "seqray split {input:q} {params.options} --out {output.table:q} --proof {output.proof:q} > {log:q} 2>&1"
