# The model of alignments, its table of labels, and the comparison of column pairs with structures.


rule rna_labels:
    input:
        f"{RUNS}/data/verified",
    output:
        f"{RUNS}/data/rna-type.tsv",
    log:
        f"{RUNS}/logs/prepare/rna-type.log",
    benchmark:
        f"{RUNS}/benchmarks/prepare/rna-type.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
        root=ROOT,
    shell:
        "cd {params.root:q} && python data/rna_type.py --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule rna_type:
    input:
        labels=f"{RUNS}/data/rna-type.tsv",
        config=f"{ROOT}/configs/{RNA}.yaml",
    output:
        table=f"{RESULTS}/rna_type.tsv",
        card=f"{RESULTS}/{RNA}.card.json",
    log:
        f"{RUNS}/logs/rna_type.log",
    benchmark:
        f"{RUNS}/benchmarks/rna_type.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
        work=f"{RUNS}/rna_type",
        root=ROOT,
    shell:
        "cd {params.root:q} && python benchmarks/rna_type.py --data {params.data:q} --labels {input.labels:q} "
        "--config {input.config:q} --work-dir {params.work:q} --out {output.table:q} --card {output.card:q} > {log:q} 2>&1"


use rule seqray_train from verbs as train_rna with:
    input:
        config=f"{ROOT}/configs/{RNA}.yaml",
        table=os.path.join(os.path.abspath(DATA), "rfam_seed", "seed.sto.gz"),
        labels=f"{RUNS}/data/rna-type.tsv",
        figures=f"{RESULTS}/{RNA}.card.json",
    output:
        f"{ZOO}/{RNA}.safetensors",
    log:
        f"{RUNS}/logs/train/{RNA}.log",
    benchmark:
        f"{RUNS}/benchmarks/train/{RNA}.tsv"
    threads: config["threads"]
    params:
        extra=rna_options,


rule pretrain_pfam:
    input:
        f"{RUNS}/data/verified",
        config=f"{ROOT}/configs/pfam-pretraining.yaml",
    output:
        f"{RUNS}/pfam.safetensors",
    log:
        f"{RUNS}/logs/pretrain_pfam.log",
    benchmark:
        f"{RUNS}/benchmarks/pretrain_pfam.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
    shell:
        "seqray pretrain {params.data:q}/pfam_domains/*.fa.gz --config {input.config:q} --threads 1 --out {output:q} > {log:q} 2>&1"


rule contacts:
    input:
        weights=f"{RUNS}/pfam.safetensors",
        model=f"{ZOO}/{RNA}.safetensors",
    output:
        f"{RESULTS}/contacts.tsv",
    log:
        f"{RUNS}/logs/contacts.log",
    benchmark:
        f"{RUNS}/benchmarks/contacts.tsv"
    conda:
        "../envs/seqray.yaml"
    params:
        data=os.path.abspath(DATA),
        root=ROOT,
    shell:
        "cd {params.root:q} && python benchmarks/contacts.py --data {params.data:q} --weights {input.weights:q} "
        "--out {output:q} > {log:q} 2>&1"
