"""Inputs of the golden commands: copies of `data/example`, and files drawn with fixed seeds."""

import gzip
import random
import shutil
from importlib.util import find_spec
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "data" / "example"
PEPTIDES = "ACDEFGHIKLMNPQRSTVWY"
CDS = ((301, 1200, "+"), (1501, 2400, "-"), (2801, 4000, "+"), (4301, 5200, "+"), (5501, 5900, "-"))
SMALL = "d_model: 16, layers: 1, heads: 2"
TRACKS = (
    "known, frame-1, frame-2, frame-3, opposite, untranslated, start, stop, opposite-start, opposite-stop"
)
SETTINGS = {
    "windows": f"model: {{{SMALL}, max_length: 30}}\ndata: {{window: 30, site: 12}}",
    "proteins": f"model: {{{SMALL}, alphabet: protein, pooling: [cls, mean], max_length: 60}}\n"
    "data: {window: 60}",
    "alignments": f"model: {{{SMALL}, kind: alignment, alphabet: rna, max_rows: 4, max_length: 20}}\n"
    "data: {window: 20, positive: paired, validation: 0.2}",
    "locator": f"model: {{{SMALL}, kind: locator, classes: 1, d_ff: 32, positions: rotary,\n"
    f"  locator: {{window: 4, stem: 8, tracks: [{TRACKS}]}}}}\ndata: {{window: 1}}\n"
    "genomes: {chunk: 256, steps_per_epoch: 4, validation_chunks: 8}\nstopping: {monitor: auprc}",
    "backbone": "model: {kind: backbone, alphabet: dna, max_length: 40, backbone: {tuning: lora, rank: 2}}\n"
    "data: {window: 30, site: 12}",
}
BATCH = "optimizer: {batch_size: 16, learning_rate: 5.0e-3}\n"
TRAINER = "trainer: {max_epochs: 2, accelerator: cpu, precision: 32-true}\nseed: 1\n"


def letters(count: int, seed: int, alphabet: str = "ACGT") -> str:
    """Random letters, the same for a seed."""
    return "".join(random.Random(seed).choices(alphabet, k=count))


def fasta(records: dict[str, str]) -> str:
    """Records as FASTA."""
    return "".join(f">{name}\n{sequence}\n" for name, sequence in records.items())


def make_inputs(folder: Path) -> None:
    """Write all inputs into a new folder."""
    folder.mkdir()
    for name in ("promoters.fa", "controls.fa", "regions.fa", "stretch.gb"):
        shutil.copy(EXAMPLES / name, folder)
    texts = settings() | labeled() | genomes() | alignments() | damaged()
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "promoters.fa.gz").write_bytes(gzip.compress((folder / "promoters.fa").read_bytes(), mtime=0))
    (folder / "cut.fa.gz").write_bytes(gzip.compress(texts["genome.fa"].encode(), mtime=0)[:-500])
    if find_spec("transformers") and find_spec("peft"):
        make_backbone(folder / "backbone")


def settings() -> dict[str, str]:
    """Files of settings with which a training takes seconds."""
    return {f"{name}.yaml": f"name: {name}\n{text}\n{BATCH}{TRAINER}" for name, text in SETTINGS.items()}


def labeled() -> dict[str, str]:
    """Tables of labeled windows and peptides, and their parts as FASTA."""
    head, rows, records = "id\tsequence\tlabel\tsubclass\tgroup\tsplit", [], {}
    for i in range(160):
        label, drawn = ("background", "promoter")[i % 2], letters(30, i)
        records[f"w{i}"] = drawn[:4] + "TATAAT" + drawn[10:] if i % 2 and i % 7 else drawn
        kind = label if i % 2 else ("shuffled", "coding")[i % 4 // 2]
        split = ("train", "validation", "test")[(i // 2 % 10 > 5) + (i // 2 % 10 > 7)]
        rows.append(f"w{i}\t{records[f'w{i}']}\t{label}\t{kind}\tg{i // 4}\t{split}")
    table = "\n".join([head, *rows, ""])
    peptides = [
        (letters(20 + i % 30, i, "KRLIWGA" if i % 2 else PEPTIDES), ("other", "amp")[i % 2])
        for i in range(80)
    ]
    return {
        "table.tsv": table,
        "table.csv": table.replace("\t", ","),
        "relatives.tsv": table
        + "".join(row.replace("w", "copy", 1).replace("train", "test") + "\n" for row in rows[:9]),
        "windows.fa": fasta(dict(list(records.items())[:12])),
        "positive.fa": fasta({k: v for k, v in records.items() if int(k[1:]) % 2}),
        "negative.fa": fasta({k: v for k, v in records.items() if int(k[1:]) % 2 == 0}),
        "peptides.fa": fasta({f"p{i}": one for i, (one, _) in enumerate(peptides[:5])}),
        "peptides.tsv": "sequence\tlabel\n" + "".join(f"{one}\t{label}\n" for one, label in peptides),
        "scores.csv": "name,score\n" + "".join(f"w{i},{i * 37 % 101 / 10}\n" for i in range(160)),
    }


def genomes() -> dict[str, str]:
    """A genome of 6 kb with genes and sites, as FASTA, GenBank and GFF3, and a sheet of two."""
    sequence, other = letters(6000, 99), letters(5800, 98)
    sites = "".join(f"c\t{at}\t{'+-'[at % 2]}\tpromoter\n" for at in range(101, 6000, 133))
    features = "".join(
        f"     CDS             {f'{a}..{b}' if s == '+' else f'complement({a}..{b})'}\n"
        f'                     /locus_tag="L{a}"\n'
        for a, b, s in CDS
    )
    genes = "".join(f"c\tx\tCDS\t{a}\t{b}\t.\t{s}\t0\tID=cds{a};locus_tag=L{a}\n" for a, b, s in CDS)
    return {
        "genome.fa": f">c\n{sequence}\n",
        "other.fa": f">c\n{other[:3000] + other[3000:3400].lower() + other[3400:]}{'N' * 200}\n",
        "genome.gb": genbank("c", sequence, "circular", features),
        "window.gb": genbank("w", letters(81, 97), "linear", ""),
        "genes.gff3": f"##gff-version 3\n{genes}",
        "sites.tsv": f"contig\tposition\tstrand\tsite\n{sites}",
        "parts.bed": "c\t500\t1500\tone\t0\t+\nc\t3000\t3600\ttwo\t0\t-\n",
        "sheet.tsv": "genome\tgenes\tsites\tspecies\tweight\n"
        "genome.fa\tgenes.gff3\tsites.tsv\tToy one\t1\nother.fa\tnone\tsites.tsv\tToy two\t1\n",
    }


def genbank(name: str, sequence: str, topology: str, features: str) -> str:
    """A record as GenBank."""
    rows = range(0, len(sequence), 60)
    lines = "".join(f"{i + 1:>9} {sequence[i : i + 60].lower()}\n" for i in rows)
    head = f"LOCUS       {name} {len(sequence):>23} bp    DNA     {topology:8} BCT 01-JAN-2000\n"
    return (
        f"{head}VERSION     {name}\nFEATURES             Location/Qualifiers\n{features}ORIGIN\n{lines}//\n"
    )


def alignments() -> dict[str, str]:
    """Families whose rows are alike or not, as Stockholm, and one family in the other formats."""
    blocks, labels = [], ["id\tlabel"]
    for i in range(60):
        query = letters(16, i, "ACGU")
        rows = [query] + [query if i % 2 == 0 else letters(16, 100 * i + k, "ACGU") for k in range(3)]
        body = "".join(f"s{k} {row}\n" for k, row in enumerate(rows))
        blocks.append(f"# STOCKHOLM 1.0\n#=GF AC fam{i}\n{body}//\n")
        labels.append(f"fam{i}\t{('paired', 'other')[i % 2]}")
    stem = "GGGCUAUUAGCUCAGUUGGUAAGCAGCUAGCCC"
    family = {"q": stem, "r1": stem.replace("UUAG", "U-AG"), "r2": stem.replace("GGG", "GAG", 1)}
    rows = "".join(f"{name:10}{row}\n" for name, row in family.items())
    return {
        "families.sto": "".join(blocks),
        "few.sto": "".join(blocks[:4]),
        "families.tsv": "\n".join([*labels, ""]),
        "one.sto": f"# STOCKHOLM 1.0\n#=GF AC one\n{rows}//\n",
        "two.afa": fasta(family),
        "three.a3m": fasta(family | {"r3": f"{stem[:9]}acg{stem[9:]}"}),
        "four.phy": f" {len(family)} {len(stem)}\n{rows}",
        "five.aln": f"CLUSTAL W (1.83) multiple sequence alignment\n\n{rows}\n",
    }


def damaged() -> dict[str, str]:
    """What has to be refused, or read with remarks."""
    return {
        "reads.fq": "@r\nACGT\n+\nIIII\n",
        "empty.fa": "",
        "twice.fa": f">a\n{letters(81, 1)}\n>a\n{letters(81, 2)}\n>none\n>n\n{'N' * 81}\n>u\n{'ACGU' * 20}\n",
        "letter.fa": ">a\nACGTACG!TT\n",
        "no-label.tsv": "id\tsequence\nw1\tACGT\n",
        "ragged.sto": "# STOCKHOLM 1.0\na ACGU\nb ACG\n//\n",
        "not-a-model.safetensors": "nothing",
        "typo.yaml": "name: toy\nmodel: {d_modle: 16}\n",
    }


def make_backbone(folder: Path) -> None:
    """Write a small BERT with random weights that reads DNA in learned words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(3)
    names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    special = list(names.values())
    words = Tokenizer(models.BPE(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    drawn = [letters(200, seed) for seed in range(50)]
    words.train_from_iterator(
        drawn, trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    )
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=words, **{f"{k}_token": v for k, v in names.items()})
    fast.save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(
        vocab_size=60, pad_token_id=3, max_position_embeddings=64, initializer_range=0.3, **sizes
    )
    BertModel(config).save_pretrained(folder)
