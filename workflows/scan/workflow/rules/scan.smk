# Divide each scan into shards (pieces of its contigs) and gather them to the same bytes as the whole scan.


rule scan:
    input:
        fasta=sequences,
        model=model_file,
        genes=genes_file,
    output:
        temp(f"{OUTDIR}/shards/{{sample}}/{{model}}/{{scatteritem}}.shard"),
    log:
        f"{OUTDIR}/logs/scan/{{sample}}/{{model}}/{{scatteritem}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/scan/{{sample}}/{{model}}/{{scatteritem}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: config["resources"]["threads"]
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        model=model_name,
        options=scan_options,
        share=share,
    shell:
        "seqray scan {input.fasta:q} --model {params.model:q} {params.options:q} --threads {threads}"
        " --shard {params.share} --out {output:q} > {log:q} 2>&1"


rule gather:
    input:
        gather.shards(
            f"{OUTDIR}/shards/{{{{sample}}}}/{{{{model}}}}/{{scatteritem}}.shard"
        ),
    output:
        gff3=report(
            f"{OUTDIR}/{{sample}}/{{model}}/calls.gff3",
            caption="../report/calls.rst",
            category="Calls",
            labels={"sample": "{sample}", "model": "{model}", "file": "GFF3"},
        ),
        tsv=f"{OUTDIR}/{{sample}}/{{model}}/calls.tsv",
        skipped=f"{OUTDIR}/{{sample}}/{{model}}/skipped.tsv",
        tracks=track_files(),
        page=page_file(),
        genes=[f"{OUTDIR}/{{sample}}/{{model}}/genes.tsv"]
        * config["scan"]["genes_table"],
    log:
        f"{OUTDIR}/logs/gather/{{sample}}/{{model}}.log",
    benchmark:
        f"{OUTDIR}/benchmarks/gather/{{sample}}/{{model}}.tsv"
    conda:
        "../envs/seqray.yaml"
    threads: 1
    resources:
        mem_mb=config["resources"]["mem_mb"],
        runtime=config["resources"]["runtime"],
    params:
        track=track_option,
        page=page_option,
        genes=genes_option,
    shell:
        "seqray gather {input:q} --out {output.gff3:q} --out {output.tsv:q} --skipped {output.skipped:q}"
        " {params.track:q} {params.page:q} {params.genes:q} > {log:q} 2>&1"
