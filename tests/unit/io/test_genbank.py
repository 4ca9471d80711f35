"""GenBank out: what Biopython reads back is the record of the input with calls, or a new one."""

import gzip
import warnings

import numpy as np
import pytest
from Bio import BiopythonWarning, SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from seqray.core.results import Box, Call, CallContext
from seqray.genome.find import gene_features, read_genes
from seqray.genome.genes import Annotation, Gene
from seqray.io.genbank import write_genbank

LETTERS = "".join(np.random.default_rng(0).choice(list("ACGT"), 1000))
CONTEXT = CallContext(
    trust="medium",
    precision=0.5,
    gene="thrL",
    distance=42,
    within="yaaX",
    within_strand="opposite",
    boxes=(Box("-10", 136, "TATAAT"), Box("-35", 113, "TTGACA")),
    spacer=17,
)
ARCHAEAL = CallContext(boxes=(Box("TATA", 471, "TTTATA"), Box("BRE", 463, "AGAAAT")), spacer=2)
PLUS = Call("chr.1", 148, 149, "+", 148, 0.875, "promoter", CONTEXT)
MINUS = Call("chr.1", 700, 701, "-", 700, 0.5, "promoter", CallContext(boxes=(Box("-10", 707, "TATGTT"),)))
LINES = ("seqray 1", "command: seqray scan", f"model: toy sha256:{'0a' * 32}")


def fasta(tmp_path, **records):
    path = tmp_path / "in.fa"
    path.write_text("".join(f">{name} {about}\n{letters}\n" for name, (about, letters) in records.items()))
    return path


def written(tmp_path, source, calls, **options):
    """What Biopython reads, without a warning, of what was written."""
    path = tmp_path / "out.gb"
    with warnings.catch_warnings():
        warnings.simplefilter("error", BiopythonWarning)
        assert write_genbank(path, source, calls, LINES, **options) == len(calls)
        return list(SeqIO.parse(path, "genbank"))


def test_a_fasta_record_becomes_a_genbank_record(tmp_path):
    source = fasta(tmp_path, **{"chr.1": ("a toy chromosome", LETTERS), "empty_of_calls": ("", "ACGTN")})
    archaeal = Call("chr.1", 500, 501, "+", 500, 0.5, "promoter", ARCHAEAL)
    record, other = written(tmp_path, source, [PLUS, archaeal, MINUS])
    assert (record.id, record.name, record.description) == ("chr.1", "chr.1", "a toy chromosome")
    assert record.seq == LETTERS
    assert record.annotations["molecule_type"] == "DNA"
    assert record.annotations["topology"] == "linear"
    # Words wider than a line get one of their own.
    assert " ".join(record.annotations["comment"].split()) == " ".join(LINES)
    assert (other.id, other.seq, other.features) == ("empty_of_calls", "ACGTN", [])
    found = [(str(f.location), f.type, f.qualifiers.get("regulatory_class")) for f in record.features]
    assert found == [
        ("[148:149](+)", "regulatory", ["promoter"]),
        ("[113:119](+)", "regulatory", ["minus_35_signal"]),
        ("[136:142](+)", "regulatory", ["minus_10_signal"]),
        ("[500:501](+)", "regulatory", ["promoter"]),
        ("[463:469](+)", "regulatory", ["other"]),
        ("[471:477](+)", "regulatory", ["TATA_box"]),
        ("[700:701](-)", "regulatory", ["promoter"]),
        ("[707:713](-)", "regulatory", ["minus_10_signal"]),
    ]
    first, thirty_five, _, _, bre, *_ = record.features
    assert bre.qualifiers["note"] == ["BRE AGAAAT, promoter_2"]
    assert first.qualifiers["note"] == [
        "promoter_1, site 149, score 0.875, trust medium, precision 0.5",
        "42 bases before the first base of thrL",
        "in yaaX on the opposite strand",
    ]
    assert first.qualifiers["gene"] == ["thrL"]
    assert first.qualifiers["inference"][0].startswith("ab initio prediction:seqray:")
    assert "experiment" not in first.qualifiers
    assert thirty_five.qualifiers["note"] == ["TTGACA, promoter_1"]


def test_calls_and_boxes_across_the_origin(tmp_path):
    forward = Call(
        "ring", 960, 1041, "+", 20, 0.5, "promoter", CallContext(boxes=(Box("-10", 997, "ACGTAC"),))
    )
    backward = Call("ring", 990, 1010, "-", 5, 0.5, "promoter", CallContext())
    source = fasta(tmp_path, ring=("", LETTERS))
    [record] = written(tmp_path, source, [forward, backward], is_circular="ring".__eq__)
    assert record.annotations["topology"] == "circular"
    call, box, other = record.features
    ring = LETTERS + LETTERS
    assert str(call.extract(record.seq)) == ring[960:1041]
    assert str(box.extract(record.seq)) == ring[997:1003]
    assert other.extract(record.seq) == Seq(ring[990:1010]).reverse_complement()


def test_a_class_that_insdc_does_not_know(tmp_path):
    source = fasta(tmp_path, c=("", LETTERS))
    [record] = written(tmp_path, source, [Call("c", 5, 9, "+", 5, 0.5, "my site")])
    [feature] = record.features
    assert (feature.type, "regulatory_class" in feature.qualifiers) == ("misc_feature", False)
    assert feature.qualifiers["note"] == ["my_site_1 (my site), site 6, score 0.5"]


@pytest.mark.parametrize(
    "name", ["NC_000913.3", "a.b.c", "NODE_1_length_100000_cov_12.5_ID_77", "x" * 60, "gi|5|ref|NC_1.1|", "7"]
)
def test_names_of_contigs_are_kept(tmp_path, name):
    [record] = written(
        tmp_path, fasta(tmp_path, **{name: ("", LETTERS)}), [Call(name, 5, 6, "+", 5, 0.5, "x")]
    )
    assert record.id == name
    assert name.startswith(record.name)
    assert len(record.seq) == 1000


def own_record():
    """A circular record with features of its own, one across the origin."""
    record = SeqRecord(Seq(LETTERS), "TOY1.2", "TOY1", "a toy plasmid")
    record.annotations |= {
        **{
            "molecule_type": "DNA",
            "topology": "circular",
            "organism": "Toy bacterium",
            "date": "01-FEB-2024",
        },
        **{"accessions": ["TOY1"], "keywords": ["toy"], "comment": "by hand"},
    }
    around = CompoundLocation([SimpleLocation(950, 1000, 1), SimpleLocation(0, 40, 1)])
    record.features = [
        SeqFeature(SimpleLocation(0, 1000, 1), "source", qualifiers={"organism": ["Toy bacterium"]}),
        SeqFeature(around, "CDS", qualifiers={"gene": ["ringA"], "codon_start": ["1"]}),
        SeqFeature(SimpleLocation(300, 600, -1), "CDS", qualifiers={"locus_tag": ["T2"]}),
    ]
    return record


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_genbank_record_keeps_what_it_has(tmp_path, suffix):
    before, source = own_record(), tmp_path / f"in.gbk{suffix}"
    text = before.format("genbank").encode()
    source.write_bytes(gzip.compress(text) if suffix else text)
    call = Call("TOY1.2", 148, 149, "+", 148, 0.875, "promoter", CONTEXT)
    genes = gene_features(Annotation({"TOY1.2": (Gene(100, 200, "+", "predicted_1"),)}, "predicted"))
    [after] = written(tmp_path, source, [call], genes=genes)
    assert (after.id, after.name, after.description, after.seq) == (
        "TOY1.2",
        "TOY1",
        "a toy plasmid",
        LETTERS,
    )
    assert " ".join(after.annotations["comment"].split()) == " ".join(("by hand", *LINES))
    kept = {"topology", "organism", "date", "keywords", "accessions"}
    assert {name: after.annotations[name] for name in kept} == {
        name: before.annotations[name] for name in kept
    }
    for old, new in zip(before.features, after.features, strict=False):
        assert (str(old.location), old.type, old.qualifiers) == (str(new.location), new.type, new.qualifiers)
    assert [feature.type for feature in after.features[3:]] == ["regulatory"] * 3


def test_genes_become_features_that_are_read_as_the_same_genes(tmp_path):
    genes = (
        Gene(-50 % 1000, 1040, "+", "ring_1", "ring_1", table=4),
        Gene(100, 160, "+", "recA", partial_start=False, partial_end=True),
        Gene(300, 600, "-", "dnaA", locus="T3", product="initiator; DnaA"),
        Gene(700, 790, "-", "trnA", locus="T4", coding=False),
    )
    source = "predicted by a tool"
    features = gene_features(Annotation({"ring": genes}, source))
    [record] = written(
        tmp_path, fasta(tmp_path, ring=("", LETTERS)), [], genes=features, is_circular="ring".__eq__
    )
    assert [f.type for f in record.features] == ["gene", "CDS"] * 3 + ["gene"]
    assert {f.qualifiers["note"][0] for f in record.features} == {source}
    tables = [f.qualifiers["transl_table"][0] for f in record.features if f.type == "CDS"]
    assert tables == ["4", "11", "11"]  # bacterial, where none is stated
    read = read_genes(tmp_path / "out.gb").of("ring")
    places = [(g.start, g.end, g.strand, g.partial_start, g.partial_end, g.coding) for g in genes]
    found = {(g.start, g.end, g.strand, g.partial_start, g.partial_end, g.coding): g for g in read}
    assert sorted(found) == sorted(places)
    named = found[300, 600, "-", False, False, True]
    assert (named.name, named.locus, named.product) == ("dnaA", "T3", "initiator; DnaA")
    assert found[100, 160, "+", False, True, True].name == "recA"
    around = found[950, 1040, "+", False, False, True]
    assert (around.name, around.locus, around.table) == ("ring_1", "ring_1", 4)


@pytest.mark.parametrize("gene", [("ring_1", "ring_1"), ("dnaA", "T3"), ("dnaA", "")])
def test_a_call_names_its_gene_as_the_gene_does(tmp_path, gene):
    name, locus = gene
    genes = gene_features(Annotation({"ring": (Gene(100, 160, "+", name, locus),)}, "a file"))
    context = CallContext(gene=name, locus=locus, distance=14)
    call = Call("ring", 85, 86, "+", 85, 0.9, "promoter", context)
    [record] = written(tmp_path, fasta(tmp_path, ring=("", LETTERS)), [call], genes=genes)
    names = [{key: f.qualifiers.get(key) for key in ("gene", "locus_tag")} for f in record.features]
    assert names == [{"gene": None if name == locus else [name], "locus_tag": [locus] if locus else None}] * 3


def test_line_breaks_of_names_stay_in_their_lines(tmp_path):
    gene = Gene(100, 160, "+", "a\nb", locus="T1", product="one\ntwo")
    genes = gene_features(Annotation({"ring": (gene,)}, "a file"))
    call = Call("ring", 85, 86, "+", 85, 0.9, "promoter", CallContext(gene="a\nb", distance=14))
    [record] = written(tmp_path, fasta(tmp_path, ring=("", LETTERS)), [call], genes=genes)
    values = {(f.type, key): f.qualifiers[key][0] for f in record.features for key in f.qualifiers}
    assert values["regulatory", "gene"] == values["gene", "gene"] == "a b"
    assert values["CDS", "product"] == "one two"


def test_a_renamed_genbank_record_bears_its_new_name(tmp_path):
    source = tmp_path / "in.gb"
    source.write_text(2 * own_record().format("genbank"))
    records = written(tmp_path, source, [], duplicates="rename")
    assert [(one.id, one.name) for one in records] == [("TOY1.2", "TOY1"), ("TOY1.2_2", "TOY1.2_2")]


def test_a_feature_whose_location_can_not_be_read_is_left_out(tmp_path):
    source = tmp_path / "in.gb"
    source.write_text(own_record().format("genbank").replace("complement(301..600)", "complement(x..600)"))
    [record] = written(tmp_path, source, [])
    assert [feature.type for feature in record.features] == ["source", "CDS"]


def test_a_record_of_no_stated_molecule_is_dna(tmp_path):
    source = tmp_path / "in.gb"
    source.write_text("LOCUS       TOY                 9 bp\nORIGIN\n        1 acgtacgta\n//\n")
    [record] = written(tmp_path, source, [])
    assert (record.seq, record.annotations["molecule_type"]) == ("ACGTACGTA", "DNA")
