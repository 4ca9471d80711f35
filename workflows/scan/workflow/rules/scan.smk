rule scan:
    input:
        fasta=sequences,
        model=model_file(),
    output:
        gff3=f"{OUTDIR}/{{sample}}/calls.gff3",
        tsv=f"{OUTDIR}/{{sample}}/calls.tsv",
        skipped=f"{OUTDIR}/{{sample}}/skipped.tsv",
        tracks=track_files(),
    log:
        f"{OUTDIR}/logs/scan/{{sample}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/scan/{{sample}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        model=MODEL,
        options=scan_options,
    shell:
        "seqray scan {input.fasta:q} --model {params.model:q} {params.options} --threads {threads}"
        " --out {output.gff3:q} --out {output.tsv:q}"
        " --skipped {output.skipped:q} > {log:q} 2>&1"
