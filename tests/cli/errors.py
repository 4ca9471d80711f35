"""What can't be done: a command, and what the line of its error must name.

Every line of a table is ``words | name | name ...``; the words stand behind the command of the table. The
files are those of the fixture ``input_files`` and `FILES`.
"""

import gzip
from collections.abc import Iterator

from tables import fasta, letters, tsv

RECORD = ">a\nACGTACGTAGCTAGCTAGCA\n"
TRUNCATED = gzip.compress("".join(f">r{i}\n{'ACGTTGCA' * 2}\n" for i in range(5000)).encode())[:-500]

SEQUENCES: dict[str, bytes] = {
    "empty.fa": b"",
    "headless.fa": b"ACGTACGTACGT\n",
    "nameless.fa": b">\n",
    "protein.fa": b">p1\nMKVLAAGIVGLALLGAWPEQ\n",
    "nul.fa": b">a\nACGT\0ACGT\n",
    "truncated.fa": TRUNCATED,
    "damaged.fa": TRUNCATED[:400] + b"\xff" * 200 + TRUNCATED[600:],
    "twice.fa": (RECORD * 2).encode(),
    "odd.fa": b">a\nACGTACG!TT\n",
    "gaps.fa": b">a\nACGT--ACGT\n",
    "fastq.fa": b"@r\nACGT\n+\nIIII\n",
    "utf16.fa": ">a\nACGT\n".encode("utf-16"),
    "gzipped.fa": gzip.compress(gzip.compress(RECORD.encode())),
    "skipped.fa": b">a\n",
    "short.fa": b">a\nACG\n>b\nACGT\n",
    "long.fa": fasta({"a": "ACGTACGTAC", "long": "ACGTACG" * 3}).encode(),
}
SITES = "contig position strand"
CLASSES = ("promoter", "background")
TEXTS = {
    "second/promoter.fa": ">x0\nACGTACGTAC\n",
    "ragged.sto": "# STOCKHOLM 1.0\na ACGUACGU\nb ACG\n//\n",
    "twice/alignments.fa": ">q\nACGU\n>r\nACGU\n",
    "alignments.fa": ">q\nACGU\n>r\nACGU\n",
    "nothing.gff3": "##gff-version 3\nc\tx\tgene\t1\t20\t.\t+\t.\tID=g\n",
    "elsewhere.gff3": "##gff-version 3\nchr\tx\tCDS\t1\t20\t.\t+\t0\tID=g\n",
    "elsewhere.fa": fasta({"three": letters(500)}),
    "nothing.bed": "",
    "odd.bed": "c\t9\t12\tone\t0\t.\n",
    "typo.tsv": tsv(f"{SITES} weigth evidence", [("c", 9, "+", 0, "weak")]),
    "siteless.tsv": tsv(SITES, []),
    "one.tsv": tsv("sequence label", [("ACGT", "a")] * 4),
    "odd.tsv": tsv("id sequence label", [("x", letters(20), "odd"), ("y", letters(20, 1), "promoter")]),
    "few.tsv": tsv("sequence label", [(letters(20, i), CLASSES[i % 2]) for i in range(30)]),
    "longer.tsv": tsv("id sequence label", [(f"x{i}", "A" * 21, CLASSES[i % 2]) for i in range(60)]),
    "trained.tsv": tsv(
        "sequence label split", [(letters(20, i), CLASSES[i % 2], "train") for i in range(60)]
    ),
    "thrice.tsv": tsv("sequence label", [(letters(30, i), "abc"[i % 3]) for i in range(6)]),
    "kinds.tsv": tsv("id label", [(f"x{i}", "abc"[i % 3]) for i in range(6)]),
    "twice.tsv": tsv("id label", [("x0", "promoter")] * 2),
    "pairs.tsv": tsv("id label", [("x0", "promoter"), ("x1", "background")]),
    "positives.tsv": tsv("id label", [("x0", "promoter")]),
    "scores.tsv": tsv("id score", [("x0", 0.5), ("x1", 0.1)]),
    "raw.tsv": tsv("id p_promoter", [(f"x{i}", i) for i in range(40)]),
    "sums.tsv": tsv("id p_promoter p_background", [("x0", 0.5, 0.5), ("x1", 0.9, 0.3)]),
    "twice.scores.tsv": tsv("id p_promoter", [("x0", 0.5)] * 2),
    "nan.json": '{"test": {"auroc": NaN}}',
    "list.json": "[1]",
    "text.shard": "not a shard\n",
    "kinds.yaml": "model: {classes: 3}\ndata: {positive: null, window: 30}\n",
    "bare.yaml": "model: {kind: backbone, max_length: 40, backbone: {tuning: lora}}\ndata: {window: 30}\n",
}
FILES = SEQUENCES | {name: text.encode() for name, text in TEXTS.items()}

TINY, LOCATOR, ALIGNED = (f"--model {name}.safetensors" for name in ("tiny", "locator", "aligned"))
TABLES = "evaluate --predictions predictions.tsv --labels labels.tsv"
TRAIN = "train --out o.safetensors --threads 1"
CONFIG = f"{TRAIN} --config config.yaml"
GENOMES = f"{TRAIN} --config genomes.yaml"
NEGATIVES = "negatives promoter.fa --recipe"

ERRORS = {
    "": """
        predit | predit | predict
        --modle | --modle | models
        predict promoter.fa | --model/-m | seqray predict --help
        train table.tsv --out o.safetensors | table.tsv | seqray train --help
        scan genome.fa --model m genome.gb | genome.gb | 1 input
        models show ecoli-promotor | ecoli-promoter
        models verify --backbone dir | --backbone
        --version --json | --version | --json | leave them out
        export no-such-model -o x.onnx | no-such-model
        export ecoli-promoter -o - | --out
        predict genome.fa --model locator.safetensors | tiny-locator | seqray scan
        calibrate locator.safetensors --test table.tsv --out o.safetensors | tiny-locator | seqray scan
        prefilter locator.safetensors genome.fa --out o.safetensors | tiny-locator | model for genomes
        scan genome.fa --model aligned.safetensors | tiny-alignments | alignments
        calibrate aligned.safetensors --train table.tsv --out o.safetensors | tiny-alignments | alignments
        prefilter tiny.safetensors genome.fa --out o.safetensors | genome.fa | 2000 | 400
    """,
    "predict -o x.tsv": """
        empty.fa --model tiny.safetensors | empty.fa | --allow-empty
        headless.fa --model tiny.safetensors | headless.fa | '>'
        nameless.fa --model tiny.safetensors | nameless.fa | record 1
        protein.fa --model tiny.safetensors | protein.fa | 'p1' | protein | antimicrobial-peptide
        protein.fa --model aligned.safetensors | protein.fa | protein | antimicrobial-peptide
        nul.fa --model tiny.safetensors | nul.fa | byte 8
        truncated.fa --model tiny.safetensors | truncated.fa | gzip
        damaged.fa --model tiny.safetensors | damaged.fa | gzip
        twice.fa --model tiny.safetensors | twice.fa | 'a' | more than once
        odd.fa --model tiny.safetensors | odd.fa | 'a' | '!' at position 8
        odd.fa --allow-empty --model tiny.safetensors | odd.fa | 'a'
        gaps.fa --model tiny.safetensors | gaps.fa | 'a' | '-' at position 5
        fastq.fa --model tiny.safetensors | fastq.fa | FASTQ
        utf16.fa --model tiny.safetensors | utf16.fa | UTF-8
        gzipped.fa --model tiny.safetensors | gzipped.fa | twice
        skipped.fa -q --model tiny.safetensors | skipped.fa | 'a' | --allow-empty
        skipped.fa --model tiny.safetensors --strict | skipped.fa | 'a'
        long.fa --model tiny.safetensors | long.fa | 'long' | 21 | 20 | seqray scan
        promoter.fa second/promoter.fa --model tiny.safetensors | second/promoter.fa | 'x0' | more than once
        promoter.fa empty.fa --model tiny.safetensors | empty.fa | --allow-empty
        - promoter.fa - --model tiny.safetensors | standard input
        alignments.fa twice/alignments.fa --model aligned.safetensors | --duplicates rename
        ragged.sto --model aligned.safetensors | ragged.sto
        alignments.sto --rows 3 --query-only --model aligned.safetensors | --query-only | --rows
        alignments.sto --rows 6 --model aligned.safetensors | 6 | tiny-alignments | 5
        promoter.fa --model tinny | tinny
        promoter.fa --model ecoli-promotor | ecoli-promoter
    """,
    f"predict promoter.fa {TINY}": """
        -o x.tsv --skipped x.tsv | x.tsv | twice
        --skipped promoter.fa | promoter.fa | input
        --device gpu | 'gpu' | cuda:N
        --device cuda:999 | cuda:999 | cpu
        --treshold 1 | --treshold | --threshold
        --prior 0 | prior | 0
        --coverage 0.9 | tiny | seqray calibrate
        --quiet --verbose | --quiet | --verbose
        --dtype bf16 --engine onnx | onnx | fp32
        --query-only | --query-only | alignments
    """,
    f"scan genome.fa {TINY}": """
        --fdr 0.1 --null-mb 0 | --fdr | null-mb
        --fdr 0.1 --threshold 0.5 | --fdr | --threshold
        --region d:1-5 | d
        --region c:1-5000 | c | 2000
        --region c:9-5 | c:9-5
        --circular-id d | --circular-id | 'd'
        -o - -o - | twice
        -o x.bed --format tsv | --format
        --bed nothing.bed | nothing.bed
        --genes none | --genes | 'tiny' | models for genomes
        --shard 4/3 --out x.shard | '4/3'
        --shard 1/3 | --shard | --out FILE.shard
        --shard 1/3 --out x.tsv | --out FILE.shard
        --shard 1/3 --out x.shard --track x.bw | --track | seqray gather
    """,
    f"scan {TINY}": """
        empty.fa | empty.fa | --allow-empty
        odd.fa -o c.tsv --track c.bw | odd.fa | 'a' | '!' at position 8
        short.fa -q -o c.gff3 | short.fa | 'a'
        short.fa -q --shard 1/2 -o c.shard | short.fa | 'a'
        short.fa --strict | short.fa | 'a' | 20
    """,
    f"scan genome.fa {LOCATOR}": """
        --stride 5 | --stride | tiny-locator
        --fdr 0.1 | --fdr | windows
        --genes elsewhere.gff3 | elsewhere.gff3 | 'chr'
        --threshold 0.5 --per-kb 1 | --threshold | --per-kb
        --per-kb 0 | --per-kb
        --precision 0.5 | precision
        --genes genes.gff3 --codon-table 4 | --codon-table | --genes genes.gff3
        --genes none --codon-table 4 | --codon-table | --genes none
    """,
    f"scan genome.gb {LOCATOR} --codon-table 4": " | --codon-table | genome.gb | --genes predict",
    "gather": """
        text.shard --out calls.tsv | text.shard
        1.shard --out x.gb | GenBank
        1.shard --upstream 9 --out x.tsv | --upstream
    """,
    f"explain promoter.fa {TINY}": """
        --class enhancer | 'enhancer'
        --method ism --method ism | once
        --residual 1 | residual | 1
        --calls - | calls | file
        --calls nothing.gff3 | nothing.gff3 | --allow-empty
        --track t.bw --duplicates keep | track | ids
        --no-check --faithfulness f.tsv | --no-check | --faithfulness
        --best-calls 2 | --best-calls | calls
        --gene x | --gene | calls
        --block 9 | --block | rollout
        --method ism --spread span | --spread | ism
        --rows 2 | --rows | alignments
        --query-only | --query-only | alignments
    """,
    f"explain {TINY}": """
        empty.fa | empty.fa
        skipped.fa -q -o x.tsv | skipped.fa | 'a' | --allow-empty
        long.fa -o x.tsv | long.fa | 'long' | 21
    """,
    f"explain alignments.sto {ALIGNED}": """
        --calls calls.gff3 | --calls | sequences
        --heads h.tsv | --heads | sequences
        --members each | --members | sequences
        --method ism | 'ism'
        --class rRNA | 'rRNA'
        --residual 1 | residual | 1
        --rows 3 --query-only | --rows | --query-only
        --rows 6 | 6 | 5
        --context "E. coli" | context
        --out same.tsv --row-profile same.tsv | same.tsv | twice
    """,
    f"explain {ALIGNED}": """
        ragged.sto | ragged.sto | 'b'
        empty.fa | empty.fa
    """,
    f"explain {LOCATOR}": """
        genome.fa | model for genomes | calls
        genome.fa --calls calls.gff3 --heads h.tsv | --heads | genomes
        genome.fa --calls calls.gff3 --gene xyz | 'xyz' | --genes-out
        genome.fa genome.fa --calls calls.gff3 | one genome
        elsewhere.fa --calls calls.gff3 --genes none | 'c'
    """,
    "evaluate": """
         | --model | --predictions
        --model tiny.safetensors | --test TABLE
        --model tiny.safetensors --predictions predictions.tsv --labels labels.tsv | --model | --predictions
        --model tiny.safetensors --test table.tsv --labels labels.tsv | --predictions | --labels
        --predictions predictions.tsv | --predictions | --labels
    """,
    TABLES: """
        --prior 0.5 | --prior | --model
        --truncate ends | --truncate | --model
        --sample x | --sample | --multiqc
        --dtype bf16 | --dtype | --model
        --test table.tsv | --labels
        --positive promoter --score-column x | predictions.tsv | 'x'
        --positive x | 'x' | --positive
        --map x=promoter | 'x' | --map
        --map promoter=a --map promoter=b | --map | 'promoter'
        --positive promoter --map promoter=x | 'x' | promoter
        --score-column p_promoter --positive background | p_promoter | --score-column p_background
        --train table.tsv --validation table.tsv | --labels | --validation
    """,
    "evaluate --predictions": """
        scores.tsv --labels pairs.tsv | --score-column NAME
        positives.tsv --labels labels.tsv | positives.tsv
        scores.tsv --labels labels.tsv --score-column score --positive promoter | 'x10'
        twice.scores.tsv --labels positives.tsv | twice.scores.tsv | 'x0'
        other.tsv --labels twice.tsv | twice.tsv | 'x0'
        other.tsv --labels kinds.tsv | a, b, c
        raw.tsv --labels labels.tsv --positive promoter | 0 to 1 | --threshold
        sums.tsv --labels pairs.tsv --positive promoter | sums.tsv | 'x1' | --score-column NAME
        other.tsv --labels positives.tsv | positives.tsv | 'promoter' | --positive
    """,
    f"evaluate {TINY} --test": """
        longer.tsv | longer.tsv | 'x0' | 21 | 20
        odd.tsv | odd.tsv | 'odd' | --map odd=CLASS | --unknown-labels drop
        table.tsv --positive promoter | --positive | --predictions
        table.tsv --id-column x | --id-column | predictions
        table.tsv --split train | 'train' | test
        table.tsv --alphabet protein | --alphabet | dna
        table.tsv --threshold 2 | --threshold | 2
        table.tsv --multiqc m.json | m.json | MultiQC
        table.tsv --train odd.tsv | 'odd' | --map odd=CLASS
        table.tsv --against ecoli-promotor | ecoli-promoter
        - --train - | standard input
    """,
    NEGATIVES: """
        shufle | 'shufle' | 'shuffle'
        shuffle=0 | 'shuffle' | '0'
        substitution --keep 20 | 20
        substitution --segments 99 | 'x0' | 20 | 99
        shuffle --starts none.tsv | --starts | --recipe genome
        shuffle --annotation genes.gff3 | --annotation | genome
        shuffle --keep 3 | --keep | 'substitution'
        genome | 'genome' | --genome FILE
        genome --genome genome.fa | 'genome' | starts
        coding --genome genome.fa | 'coding' | genes
        genome --genome genome.fa --annotation genome.fa | genome.fa | annotation
        coding --genome genome.fa --annotation starts.bed | starts.bed | CDS
        genome --genome genome.fa --annotation genes.gff3 --feature TSS | genes.gff3 | TSS | CDS (2)
        genome --genome promoter.fa --annotation genes.gff3 --feature CDS | genes.gff3 | 'c' | 'x0'
        shuffle -o x.fa | --only-negatives
        shuffle -o x.tsv --format fasta | --format fasta | x.tsv
        shuffle --label-negative promoter | --label-negative
        shuffle --alphabet protein | protein
    """,
    "negatives": """
        promoter.fa | --recipe
        labels.tsv --recipe shuffle | labels.tsv | sequence
        odd.tsv --recipe shuffle --label-positive site | odd.tsv | 'site' | --label-positive
        protein.fa --recipe shuffle | 'p1' | --alphabet protein
        protein.fa --recipe genome --genome genome.fa --alphabet protein | 'genome' | protein
        empty.fa --recipe shuffle | empty.fa
        twice.fa --recipe shuffle | twice.fa | 'a' | more than once
    """,
    "split --out out.tsv table.tsv": """
        --shares 0,1,1 | --shares | 0,1,1
        --shares 0.5,0.6 | 1.1
        --shares 0.5,0.5 --folds 3 | --folds | --shares
        --folds 1 | --folds | 1
        --folds 99 | 99
        --identity 0.5 | --identity | 0.5
        --keep test | 'test'
        --group-by species | table.tsv | 'species' | id, sequence, label
        --positions id | 'x0' | id
        --positions contig | --positions | CONTIG,POSITION
        --positions label,id | 'x0' | 'id'
        --alphabet protein | protein
        --proof out.tsv | out.tsv | twice
        --block 100 | --block | --positions
        --relatives join | --relatives | --keep
    """,
    "split": """
         | --train
        --class=a=promoter.fa --group-by gene | 'gene' | table
    """,
    "audit --no-baselines": """
         | --train TABLE | --class LABEL=FASTA
        table.tsv --class a=promoter.fa | --class | tables
        --class a=promoter.fa | promoter.fa | 'a'
        table.tsv --alphabet protein | nucleotides
        table.tsv --out a --html a | a: | twice
    """,
    "calibrate tiny.safetensors --out o.safetensors": """
         | --test TABLE
        --test few.tsv | few.tsv | 15 | 'promoter' | 20
        --test longer.tsv | 'x0' | 21 | 20
        --test odd.tsv | 'x' | 'odd'
        --test trained.tsv | trained.tsv | 'train'
        --train trained.tsv | 'train'
    """,
    "calibrate": """
        tiny.safetensors --test table.tsv --out tiny.safetensors | tiny.safetensors | overwritten
    """,
    "pretrain genome.fa --config config.yaml": """
        --share 0 --out o.safetensors | share | 0
        --set data.window=1900 --set model.max_length=1900 --out o.safetensors | windows
    """,
    CONFIG: """
         | --train TABLE | --class LABEL=FASTA
        --train table.tsv --class promoter=p.fa | --class | tables
        --class promoter | --class LABEL=FASTA
        --class =p.fa | label | --class LABEL=FASTA
        --class #a=p.fa | --class | '#a'
        --class a=x.fa --class a=y.fa | 'a' | twice
        --train one.tsv | one.tsv | 'a'
        --train table.tsv --genome genome.fa | --train
        --genome genome.fa | --genome | models for genomes
        --train table.tsv --backbone . | --backbone | model.kind
    """,
    f"{CONFIG} --train table.tsv": """
        --set model.dmodel=3 | model.dmodel | model.d_model
        --set trainer.max_epoch=3 | trainer.max_epochs
        --set seed.x=3 | 'seed'
        --set model.words=1 | model.words
        --set model.words=8 | model.words
        --set model.words=3 --set model.tokenizer=kmer --set model.k=3 | character
        --set 'model.composition=[whole, whole]' | model.composition
        --set 'model.composition=[whole]' --set model.tokenizer=kmer --set model.k=3 | character
        --set 'model.composition=[whole]' --set 'model.pooling=[mean]' | model.pooling
        --set seed | --set seed | section.key=value
        --set seed=[ | --set seed=[ | YAML
        --set data.positive=promotor | 'promotor'
        --set data.window=10 | table.tsv | 'x0' | 20 | data.window
        --set optimizer.label_smoothing=.inf | optimizer.label_smoothing | inf
        --set card.made=2001-01-01 | card.made | date
        --members 9 | members | 5
        --metrics nan.json | nan.json | metrics.test.auroc
        --metrics list.json | list.json | JSON
        --like ecoli-promoter | --config | --like
    """,
    "train --config config.yaml --train table.tsv --out": """
        tiny.safetensors --teacher tiny.safetensors | tiny.safetensors | overwritten
        tiny.safetensors --init tiny.safetensors | tiny.safetensors | overwritten
    """,
    f"{TRAIN} --train table.tsv": """
        --like ecoli-promotor | ecoli-promoter
        --like antimicrobial-peptide | nucleotides | protein
        --like bacteria-genome | bacteria-genome | --genome | --sites
        --genome genome.fa | --genome | --like bacteria-genome
        --alignment-labels labels.tsv | alignments | --like rna-family-type
        --backbone . | --backbone | model.kind
    """,
    f"{TRAIN} --train thrice.tsv --config kinds.yaml --set": """
        model.classes=2 | model.classes | 3 labels | --set model.classes=3
        data.positive=x | 'x'
        data.window=20 | 30 | data.window
    """,
    f"{GENOMES} --genome genome.fa --sites": """
        starts.tsv --train table.tsv | --train | models for genomes
        starts.tsv --truncate none | --truncate
        starts.tsv --set model.alphabet=rna | model.alphabet
        typo.tsv | 'weigth' | 'weight'
        siteless.tsv | siteless.tsv
        odd.bed | odd.bed | '.'
    """,
    GENOMES: """
        --genome genome.fa | sites
        --sheet sheet.tsv --genome genome.fa | sheet | genome
        --sheet sheet.tsv --species A | --species
        --sheet sheet.tsv --genes none | --genes
    """,
    f"{TRAIN} --train table.tsv --config bare.yaml": """
         | model.backbone.path | --backbone DIR
        --backbone nowhere | nowhere
        --set model.kind=sequence | model.backbone | model.kind: backbone
        --set model.backbone.rank=0 --backbone . | model.backbone.rank
        --set model.backbone.ranks=2 --backbone . | model.backbone.rank
    """,
}  # fmt: skip


def rows() -> Iterator[tuple[str, list[str]]]:
    """Each command line and the names that its error must have."""
    for command, lines in ERRORS.items():
        for line in lines.strip("\n").splitlines():
            words, *names = line.split("|")
            if names:
                yield f"{command} {words.strip()}".strip(), [name.strip() for name in names]
