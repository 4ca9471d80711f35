"""Genes of hand-written files: the same ones from GenBank and GFF3, with all that files do to genes."""

import pytest

from seqray.core.errors import InputError
from seqray.genome.find import read_genes
from seqray.genome.genes import Gene

FEATURES = """\
     source          1..1200
     gene            join(1101..1200,1..50)
                     /gene="oriA"
                     /locus_tag="L08"
     CDS             join(1101..1200,1..50)
                     /gene="oriA"
                     /locus_tag="L08"
     gene            join(complement(60..70),80..95)
                     /locus_tag="L07"
                     /trans_splicing
     CDS             join(complement(60..70),80..95)
                     /locus_tag="L07"
                     /trans_splicing
     gene            101..400
                     /gene="dnaA"
                     /locus_tag="L01"
     CDS             101..400
                     /gene="dnaA"
                     /locus_tag="L01"
                     /product="initiator; DnaA"
     gene            complement(500..700)
                     /gene="prfB"
                     /locus_tag="L02"
     CDS             complement(join(500..600,602..700))
                     /gene="prfB"
                     /locus_tag="L02"
                     /ribosomal_slippage
     gene            complement(710..780)
                     /locus_tag="L03"
     tRNA            complement(710..780)
                     /locus_tag="L03"
                     /product="tRNA-Ala"
     gene            800..850
                     /gene="deadA"
                     /locus_tag="L04"
                     /pseudo
     gene            860..1000
                     /locus_tag="L05"
                     /pseudo
     CDS             join(860..890,960..1000)
                     /locus_tag="L05"
                     /pseudo
     CDS             complement(<1010..1040)
                     /locus_tag="L09"
     CDS             <1050..1090
                     /locus_tag="L06"
                     /codon_start=2
"""

GFF3 = """\
##gff-version 3
##sequence-region chr1.1 1 1200
chr1.1\tx\tregion\t1\t1200\t.\t+\t.\tID=chr1.1:1..1200;Is_circular=true
chr1.1\tx\tgene\t1101\t1250\t.\t+\t.\tID=gene-L08;Name=oriA;gene=oriA;locus_tag=L08
chr1.1\tx\tCDS\t1101\t1250\t.\t+\t0\tID=cds-8;Parent=gene-L08;Name=WP_8.1;gene=oriA;locus_tag=L08
chr1.1\tx\tgene\t60\t70\t.\t-\t.\tID=gene-L07;locus_tag=L07;part=1/2
chr1.1\tx\tgene\t80\t95\t.\t+\t.\tID=gene-L07;locus_tag=L07;part=2/2
chr1.1\tx\tCDS\t80\t95\t.\t+\t1\tID=cds-7;Parent=gene-L07;locus_tag=L07;part=2/2
chr1.1\tx\tCDS\t60\t70\t.\t-\t0\tID=cds-7;Parent=gene-L07;locus_tag=L07;part=1/2
chr1.1\tx\tgene\t101\t400\t.\t+\t.\tID=gene-L01;gene=dnaA;locus_tag=L01
chr1.1\tx\tCDS\t101\t400\t.\t+\t0\tID=cds-1;Parent=gene-L01;gene=dnaA;locus_tag=L01;product=initiator%3B DnaA
chr1.1\tx\tgene\t500\t700\t.\t-\t.\tID=gene-L02;gene=prfB;locus_tag=L02
chr1.1\tx\tCDS\t602\t700\t.\t-\t0\tID=cds-2;Parent=gene-L02;gene=prfB;locus_tag=L02
chr1.1\tx\tCDS\t500\t600\t.\t-\t0\tID=cds-2;Parent=gene-L02;gene=prfB;locus_tag=L02
chr1.1\tx\tgene\t710\t780\t.\t-\t.\tID=gene-L03;locus_tag=L03
chr1.1\tx\ttRNA\t710\t780\t.\t-\t.\tID=rna-L03;Parent=gene-L03;locus_tag=L03;product=tRNA-Ala
chr1.1\tx\texon\t710\t780\t.\t-\t.\tID=exon-L03;Parent=rna-L03;locus_tag=L03
chr1.1\tx\tpseudogene\t800\t850\t.\t+\t.\tID=gene-L04;gene=deadA;locus_tag=L04;pseudo=true
chr1.1\tx\tpseudogene\t860\t1000\t.\t+\t.\tID=gene-L05;locus_tag=L05;pseudo=true
chr1.1\tx\tCDS\t860\t890\t.\t+\t0\tID=cds-5;Parent=gene-L05;locus_tag=L05;pseudo=true
chr1.1\tx\tCDS\t960\t1000\t.\t+\t2\tID=cds-5;Parent=gene-L05;locus_tag=L05;pseudo=true
chr1.1\tx\tCDS\t1010\t1040\t.\t-\t0\tID=cds-9;locus_tag=L09;partial=true;start_range=.,1010
chr1.1\tx\tCDS\t1050\t1090\t.\t+\t1\tID=cds-6;locus_tag=L06;partial=true;start_range=.,1050
"""

EXPECTED = (
    Gene(59, 70, "-", "L07", "L07", partial_end=True),
    Gene(80, 95, "+", "L07", "L07", partial_start=True),  # 11 letters before: the last of codon four is 79
    Gene(100, 400, "+", "dnaA", "L01", "initiator; DnaA"),
    Gene(499, 700, "-", "prfB", "L02"),
    Gene(709, 780, "-", "L03", "L03", "tRNA-Ala", coding=False),
    Gene(799, 850, "+", "deadA", "L04", pseudo=True, coding=False),
    Gene(859, 890, "+", "L05", "L05", partial_end=True, pseudo=True),
    Gene(961, 1000, "+", "L05", "L05", partial_start=True, pseudo=True),  # 31 letters before
    Gene(1009, 1040, "-", "L09", "L09", partial_end=True),
    Gene(1050, 1090, "+", "L06", "L06", partial_start=True),
    Gene(1100, 1250, "+", "oriA", "L08"),
)


def genbank(features: str, length: int = 1200, topology: str = "circular") -> str:
    letters = ("acgtacgtac " * 6).strip()
    rows = "\n".join(
        f"{at:9d} {letters[: 66 * min(60, length - at + 1) // 60]}" for at in range(1, length, 60)
    )
    return (
        f"LOCUS       chr1{length:25d} bp    DNA     {topology} BCT 01-JAN-2000\n"
        "DEFINITION  Made by hand.\nACCESSION   chr1\nVERSION     chr1.1\n"
        f"FEATURES             Location/Qualifiers\n{features}ORIGIN\n{rows}\n//\n"
    )


def read(tmp_path, text, name="genes.txt", circles=None):
    path = tmp_path / name
    path.write_text(text)
    return read_genes(path, circles)


def rows(*lines: str) -> str:
    return "##gff-version 3\n" + "".join(line.replace(" ", "\t", 8) + "\n" for line in lines)


@pytest.mark.parametrize("text", [genbank(FEATURES), GFF3], ids=["GenBank", "GFF3"])
def test_the_same_genes_from_both_formats(tmp_path, text):
    annotation = read(tmp_path, text)
    assert annotation.of("chr1.1") == EXPECTED
    assert annotation.count == len(EXPECTED) - 2  # L05 and L07 are in two pieces
    assert annotation.lengths == {"chr1.1": 1200}
    assert set(annotation.circular) == {"chr1.1"}
    assert annotation.of("other") == ()


@pytest.mark.parametrize("numbers", [("2", "1"), ("2/2", "1/2")])
def test_numbers_of_parts_go_before_their_places(tmp_path, numbers):
    lines = [
        f"c x CDS {at} . + 0 ID=a;part={part}" for at, part in zip(("1 30", "91 120"), numbers, strict=True)
    ]
    first, second = read(tmp_path, rows(*lines)).of("c")
    assert (first.start, first.partial_start, first.partial_end) == (0, True, False)
    assert (second.start, second.partial_start, second.partial_end) == (90, False, True)


def test_prokka_has_coding_lines_alone_and_a_fasta(tmp_path):
    text = rows(
        "c1 Prodigal CDS 11 40 . + 0 ID=P_1;Name=dnaN;gene=dnaN;locus_tag=P_1;product=clamp%2C beta",
        "c1 Prodigal CDS 51 80 . - 0 ID=P_2;locus_tag=P_2;product=hypothetical protein",
        "c1 barrnap rRNA 90 99 . + . ID=P_3;locus_tag=P_3",
    )
    found = read(tmp_path, text + "##FASTA\n>c1\nACGT\tnot a feature\n").of("c1")
    assert found == (
        Gene(10, 40, "+", "dnaN", "P_1", "clamp, beta"),
        Gene(50, 80, "-", "P_2", "P_2", "hypothetical protein"),
        Gene(89, 99, "+", "P_3", "P_3", coding=False),
    )


def test_bakta_names_a_line_by_its_product(tmp_path):
    text = rows("c1 Pyrodigal CDS 11 40 . + 0 ID=B_1;Name=Clamp;locus_tag=B_1;product=Clamp")
    assert read(tmp_path, text).of("c1") == (Gene(10, 40, "+", "B_1", "B_1", "Clamp"),)


def test_prodigal_marks_the_open_end(tmp_path):
    text = rows(
        "c1 Prodigal_v2.6.3 CDS 2 40 9.9 + 0 ID=1_1;partial=10;start_type=Edge",
        "c1 Prodigal_v2.6.3 CDS 51 80 9.9 - 0 ID=1_2;partial=01;start_type=Edge",
    )
    assert read(tmp_path, text).of("c1") == (
        Gene(1, 40, "+", "1_1", "1_1", partial_start=True),
        Gene(50, 80, "-", "1_2", "1_2", partial_start=True),
    )


def test_ensembl_puts_a_transcript_between(tmp_path):
    text = rows(
        "1 ena gene 11 100 . + . ID=gene:b1;Name=thrL;biotype=protein_coding;gene_id=b1",
        "1 ena mRNA 11 100 . + . ID=transcript:A;Parent=gene:b1",
        "1 ena CDS 11 100 . + 0 ID=CDS:A;Parent=transcript:A",
        "1 ena mRNA 11 100 . + . ID=transcript:B;Parent=gene:b1",
        "1 ena CDS 11 100 . + 0 ID=CDS:B;Parent=transcript:B",
        "1 ena ncRNA_gene 201 300 . - . ID=gene:b2;gene_id=b2;biotype=rRNA",
        "1 ena rRNA 201 300 . - . ID=transcript:C;Parent=gene:b2",
    )
    assert read(tmp_path, text).of("1") == (
        Gene(10, 100, "+", "thrL", "b1"),
        Gene(200, 300, "-", "b2", "b2", coding=False),
    )


def test_genes_of_a_file_without_coding_lines(tmp_path):
    text = rows(
        "c1 x gene 11 40 . + . ID=g1;Name=abc",
        "c1 x gene 51 80 . + . ID=g2;gene_biotype=tRNA",
        "c1 x pseudogene 81 90 . + . ID=g3",
    )
    assert [(g.name, g.coding, g.pseudo) for g in read(tmp_path, text).of("c1")] == [
        ("abc", True, False),
        ("g2", False, False),
        ("g3", False, True),
    ]


def test_lines_without_an_id_are_one_gene_where_they_name_one_parent(tmp_path):
    text = rows(
        "c1 x gene 11 60 . + . ID=g1",
        "c1 x CDS 11 40 . + 0 Parent=g1",
        "c1 x CDS 42 60 . + 0 Parent=g1",
        "c1 x CDS 71 90 . + 0 .",
        "c1 x CDS 101 130 . + 0 .",
    )
    assert [(g.start, g.end, g.name) for g in read(tmp_path, text).of("c1")] == [
        (10, 60, "g1"),
        (70, 90, "CDS_71"),
        (100, 130, "CDS_101"),
    ]


def test_a_gene_is_named_by_the_parent_on_its_own_contig(tmp_path):
    """Files of several contigs that were written one by one count their genes from 1 in each."""
    text = rows(
        "c1 x gene 11 40 . + . ID=g1;Name=abc",
        "c1 x CDS 11 40 . + 0 ID=p1;Parent=g1",
        "c2 x gene 51 80 . + . ID=g1;Name=xyz",
        "c2 x CDS 51 80 . + 0 ID=p1;Parent=g1",
    )
    annotation = read(tmp_path, text)
    assert [[gene.name for gene in annotation.of(contig)] for contig in ("c1", "c2")] == [["abc"], ["xyz"]]


@pytest.mark.parametrize("strand", ["+", "-"])
def test_two_lines_that_meet_at_the_origin_are_one_gene(tmp_path, strand):
    text = rows(
        "c1 x region 1 1000 . + . ID=c1;Is_circular=true",
        f"c1 x CDS 1 50 . {strand} 0 ID=a",
        f"c1 x CDS 901 1000 . {strand} 0 ID=a",
    )
    assert read(tmp_path, text).of("c1") == (Gene(900, 1050, strand, "a", "a"),)
    linear = text.replace(";Is_circular=true", "")
    assert [(g.start, g.end) for g in read(tmp_path, linear).of("c1")] != [(900, 1050)]
    known = read(tmp_path, linear, circles={"c1": 1000, "c2": 30})
    assert known.of("c1") == (Gene(900, 1050, strand, "a", "a"),)
    assert (set(known.genes), set(known.circular)) == ({"c1"}, {"c1", "c2"})


@pytest.mark.parametrize(
    ("strand", "phases", "first"), [("+", (1, 0), 900), ("-", (0, 2), 1040)], ids=["plus", "minus"]
)
def test_the_phase_of_two_lines_at_the_origin_is_that_of_the_first_to_be_read(
    tmp_path, strand, phases, first
):
    """101 letters before the origin leave 1 of a codon, 40 after it leave 2, see the definition of phases."""
    text = rows(
        "c1 x region 1 1001 . + . ID=c1;Is_circular=true",
        f"c1 x CDS 1 40 . {strand} {phases[0]} ID=a",
        f"c1 x CDS 901 1001 . {strand} {phases[1]} ID=a",
    )
    (gene,) = read(tmp_path, text).of("c1")
    assert (gene.start, gene.end) == (900, 1041)
    assert gene.complete
    assert gene.start_codon == first


@pytest.mark.parametrize(("topology", "circles"), [("circular", {}), ("linear  ", {"chr1.1": 1200})])
def test_genbank_across_the_origin_sorted_by_position_begins_before_it(tmp_path, topology, circles):
    features = "     CDS             join(1..50,<1101..1200)\n"
    (gene,) = read(tmp_path, genbank(features, topology=topology), circles=circles).of("chr1.1")
    assert (gene.start, gene.end, gene.partial_start, gene.partial_end) == (1100, 1250, True, False)


def test_genbank_across_the_origin_on_the_other_strand(tmp_path):
    features = "     CDS             complement(join(1101..1200,1..50))\n"
    (gene,) = read(tmp_path, genbank(features)).of("chr1.1")
    assert (gene.start, gene.end, gene.strand, gene.start_codon) == (1100, 1250, "-", 1249)


def test_genbank_genes_without_a_locus_tag(tmp_path):
    features = (
        '     gene            11..40\n                     /gene="a"\n'
        '     CDS             11..40\n                     /gene="a"\n'
        "     gene            51..80\n     CDS             51..80\n"
        '     gene            91..130\n                     /gene="b"\n                     /pseudo\n'
        '     CDS             complement(93..120)\n                     /gene="b"\n'
    )
    assert read(tmp_path, genbank(features)).of("chr1.1") == (
        Gene(10, 40, "+", "a"),
        Gene(50, 80, "+", "CDS_51"),
        Gene(92, 120, "-", "b", pseudo=True),
    )


def test_a_gene_in_pieces_counts_once_with_and_without_a_locus_tag(tmp_path):
    exons = "join(11..40,201..230,401..430)"
    features = (
        f"     CDS             {exons}\n"
        f'     CDS             complement({exons})\n                     /gene="a"\n'
        f'     CDS             {exons}\n                     /locus_tag="L1"\n'
        '     tRNA            501..530\n                     /gene="t"\n'
        '     tRNA            551..580\n                     /gene="t"\n'
    )
    annotation = read(tmp_path, genbank(features))
    assert len(annotation.of("chr1.1")) == 11
    assert annotation.count == 5
    assert [gene.name for gene in annotation.of("chr1.1") if gene.strand == "+"][::2] == [
        "CDS_11", "CDS_11", "CDS_11", "t"
    ]  # fmt: skip


def test_parts_on_other_records_are_left_out(tmp_path):
    """What begins or ends there is partial; 103 letters there leave two of a codon here."""
    features = (
        "     CDS             join(J00194.1:100..202,11..40)\n     CDS             J00194.1:1..30\n"
        "     CDS             complement(join(J00194.1:100..201,51..80))\n"
    )
    found = read(tmp_path, genbank(features)).of("chr1.1")
    assert [(g.start, g.end, g.partial_start, g.partial_end) for g in found] == [
        (12, 40, True, False),
        (50, 80, False, True),
    ]


def test_lines_of_one_locus_tag_are_one_gene_also_without_ids(tmp_path):
    text = rows(
        "c1 x region 1 1000 . + . ID=c1;Is_circular=true",
        "c1 x CDS 971 1000 . + . locus_tag=L1",
        "c1 x CDS 1 30 . + . locus_tag=L1",
    )
    [gene] = read(tmp_path, text).of("c1")
    assert (gene.start, gene.end, gene.complete) == (970, 1030, True)
    pieces = read(tmp_path, text.replace(";Is_circular=true", "")).of("c1")
    assert [(g.start, g.end, g.partial_start, g.partial_end) for g in pieces] == [
        (0, 30, False, True),
        (970, 1000, True, False),
    ]


@pytest.mark.parametrize("before", ["##FASTA\n", ""])
def test_letters_end_gff3(tmp_path, before):
    text = rows("c1 x CDS 1 30 . + 0 ID=a") + before + ">c1\nACGT\n"
    assert [gene.end for gene in read(tmp_path, text).of("c1")] == [30]


def test_files_that_were_joined_are_all_read(tmp_path):
    files = [rows(f"c{i} x CDS 1 {30 * i} . + 0 ID=a") + f"##FASTA\n>c{i}\nACGT\n" for i in (1, 2, 3)]
    genome = read(tmp_path, "".join(files))
    assert {contig: [gene.end for gene in genome.of(contig)] for contig in ("c1", "c2", "c3")} == {
        "c1": [30],
        "c2": [60],
        "c3": [90],
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("c1 x CDS 1 30 . . 0 ID=a", "line 2: a gene has the strand '.'; use"),
        ("c1 x CDS 1 30 . ? 0 ID=a", "line 2: a gene has the strand '?'; use"),
        ("c1 x CDS 1 30 . + 3 ID=a", "line 2: has the phase '3'; use 0, 1, 2 or ."),
        ('c1 x CDS 1 30 . + 0 gene_id "a"; transcript_id "a";', "line 2: is GTF, not GFF3; convert it"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, rows(line))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">chr1\nACGT\n", "is FASTA, not an annotation of genes; give GenBank or GFF3"),
        ("", "is empty; give GenBank or GFF3"),
        (genbank(FEATURES)[:1500], "the GenBank record"),
        (genbank("     CDS             1..4x0\n"), "'chr1': the location '1..4x0' can't be read; correct"),
        (genbank(FEATURES).replace("acgtacgtac\n//\n", "acgt\n//\n"), "cut off"),
    ],
)
def test_other_and_damaged_files_are_refused(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
