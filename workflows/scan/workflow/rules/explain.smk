rule explain:
    input:
        fasta=sequences,
        model=model_file,
        genes=genes_file,
        calls=f"{OUTDIR}/{{sample}}/{{model}}/calls.gff3",
    output:
        table=f"{OUTDIR}/{{sample}}/{{model}}/explanations.tsv",
        checks=f"{OUTDIR}/{{sample}}/{{model}}/explanations.faithfulness.tsv",
        page=report(
            f"{OUTDIR}/{{sample}}/{{model}}/explanations.html",
            caption="../report/explanations.rst",
            category="Explanations of the top calls",
            labels={"sample": "{sample}", "model": "{model}"},
        ),
    log:
        f"{OUTDIR}/logs/explain/{{sample}}/{{model}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/explain/{{sample}}/{{model}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        model=model_name,
        method=config["explain"]["method"],
        calls=config["explain"]["calls"],
        options=explain_options,
    shell:
        "seqray explain {input.fasta:q} --model {params.model:q} --calls {input.calls:q}"
        " --best-calls {params.calls} --method {params.method} --threads {threads} --allow-empty"
        " {params.options:q}"
        " --out {output.table:q} --faithfulness {output.checks:q} --html {output.page:q} > {log:q} 2>&1"
