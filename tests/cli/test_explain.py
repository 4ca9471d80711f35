"""``seqray explain`` from file to file, with the tiny random model of conftest."""

import gzip
from dataclasses import replace

import pyBigWig
import pytest

from seqray.cli.explain_options import METHODS as OFFERED
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.model_config import ModelConfig
from seqray.core.results import Call
from seqray.explanations.methods import METHODS
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import explain_records
from seqray.io.explanations import CHECK_COLUMNS, EXPLANATION_COLUMNS, HEAD_COLUMNS
from seqray.io.gff3 import write_gff3
from seqray.modelfile.file import build_network, save_model
from tables import changed_model, fasta, letters, record, table, write

RECORDS = [record(letters(20 - i % 4, 60 + i), f"r{i}") for i in range(12)]
GENOME = letters(90, 99)


@pytest.fixture
def explain(run, tiny_model_file, tmp_path):
    """Run the verb where in.fa is."""
    write(tmp_path / "in.fa", fasta(RECORDS))
    return run.to("explain --model", tiny_model_file)


def test_the_command_line_offers_every_method():
    assert tuple(METHODS) == OFFERED


def test_the_table_is_what_the_library_says(explain, tiny_model):
    ended = explain("in.fa --method rollout --method ism --shuffles 3")
    assert list(ended.rows[0]) == list(EXPLANATION_COLUMNS)
    by_key = {}
    for method in ("rollout", "ism"):
        options = ExplainOptions(methods=(method,), shuffles=3)
        by_key |= {(e.id, e.method): e for e in explain_records(tiny_model, RECORDS, options)}
    assert len(ended.rows) == 2 * sum(len(r) for r in RECORDS)
    for row in ended.rows:
        e, i = by_key[row["record"], row["method"]], int(row["position"])
        assert float(row["score"]) == pytest.approx(e.scores[i], rel=1e-4, abs=1e-6)
        assert int(row["rank"]) == 1 + (e.scores > e.scores[i]).sum() + (e.scores[:i] == e.scores[i]).sum()
        assert float(row["ism_delta"]) == pytest.approx(e.effects[i].sum() / 3, rel=1e-3, abs=1e-5)
        assert (float(row["p"]), float(row["q"])) == pytest.approx((e.p[i], e.q[i]), rel=1e-4)
        assert row["base"] == e.sequence[i]
        assert row["sign"] == ("." if row["method"] == "rollout" else "+" if e.scores[i] > 0 else "-")
        assert [row[name] for name in ("member", "class", "contig")] == ["mean", "promoter", "."]
    assert "12 records, 0 skipped" in ended.err
    assert ended.err.count("random rankings") == 2


def test_letters_that_are_not_read_have_no_values(run, tiny_model, tmp_path):
    """The model reads 20 letters of 30."""
    changed_model(tmp_path / "anywhere.safetensors", tiny_model, site=None)
    write(tmp_path / "long.fa", fasta({"a": "ACGTACGTACAAAAATTTTTGGGGGCCCCC", "b": "ACGTACGTACGGGGGCCCCC"}))
    words = "explain long.fa --model anywhere.safetensors --truncate ends --method occlusion --method rollout"
    ended = run(words, "--track t.bedgraph --plot p.svg --html o.html --out -")
    assert ended.facts["truncate"].startswith("ends: at most 20 bases")
    assert "1 of 2 sequences are longer than 20 letters" in ended.err
    for method in ("occlusion", "rollout"):
        found = [row for row in ended.rows if (row["record"], row["method"]) == ("a", method)]
        columns = ("score", "rank", "sign", "ism_delta", "p", "q")
        assert {row[name] for row in found[10:20] for name in columns} == {"."}
        assert sorted(int(row["rank"]) for row in found[:10] + found[20:]) == [*range(1, 21)]
    track = (tmp_path / "t.occlusion.plus.bedgraph").read_text()
    assert "a\t9\t10\t" in track
    assert not any(f"a\t{i}\t" in track for i in range(10, 20))
    assert "nan" not in (tmp_path / "p.svg").read_text().lower()


def test_top_keeps_the_best_ranks(explain):
    rows = explain("in.fa --top 3 --no-check --shuffles 0").rows
    assert len(rows) == 3 * len(RECORDS)
    assert {row["rank"] for row in rows} == {"1", "2", "3"}
    assert {(row["ism_delta"], row["p"], row["q"]) for row in rows} == {(".", ".", ".")}


def test_all_outputs_of_one_run(explain, tmp_path):
    words = "--out o.tsv.gz --html r.html --plot p.svg --heads h.tsv --motifs m.meme --motifs m.tsv"
    assert explain("in.fa --shuffles 2 --track t.bw", words).out == ""
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    names = {"o.tsv.gz", "r.html", "p.svg", "h.tsv", "m.meme", "m.tsv", "o.faithfulness.tsv"}
    assert first.keys() == names | {"in.fa", "t.plus.bw", "t.minus.bw"}
    checks = first["o.faithfulness.tsv"].decode()
    assert tuple(table(checks)[0]) == CHECK_COLUMNS
    assert {"deletion_gain", "insertion_gain", "rank_correlation"} <= {c["measure"] for c in table(checks)}
    assert "# verdict: rollout " in checks
    heads = table(first["h.tsv"].decode())
    assert tuple(heads[0]) == HEAD_COLUMNS
    assert [(h["member"], h["layer"], h["head"]) for h in heads] == [("1", "1", "1"), ("1", "1", "2")]
    assert b"r11" in first["r.html"]
    track = pyBigWig.open(str(tmp_path / "t.plus.bw"))
    for row in table(gzip.decompress(first["o.tsv.gz"]).decode()):
        place = int(row["position"])
        [value] = track.values(row["record"], place, place + 1)
        assert value == pytest.approx(float(row["score"]), rel=1e-4)
    assert pyBigWig.open(str(tmp_path / "t.minus.bw")).header()["nBasesCovered"] == 0


def test_the_page_says_which_records_were_checked(explain, tiny_model, tmp_path):
    found = explain_records(tiny_model, RECORDS, ExplainOptions(shuffles=0))
    called = [e.label for e in found].count("promoter")
    words = "in.fa --html r.html --out o.tsv --shuffles 0"
    told = explain(words).err
    assert 0 < called < len(RECORDS)
    said = f"he checks use {called} of the {len(RECORDS)} records"
    assert said in told
    assert said in (tmp_path / "r.html").read_text()
    explain(words, "--class called --check-records 5")
    assert f"The checks use 5 of the {len(RECORDS)} records" in (tmp_path / "r.html").read_text()


# --- calls -----------------------------------------------------------------------------------------


@pytest.fixture
def of_calls(explain, tmp_path):
    """Explain calls of a genome on both strands, the last one across the origin of a circle."""
    write(tmp_path / "g.fa", fasta({"other": "ACGT", "chr": GENOME}))
    places = ((7, "+"), (40, "-"), (80, "-"))
    calls = [Call("chr", s, s + 20, strand, s, 0.9, "promoter") for s, strand in places]
    write_gff3(tmp_path / "c.gff3", calls, contigs={"chr": 90}, circular=["chr"])
    return explain.to("g.fa --calls c.gff3 --no-check --shuffles 0")


def test_calls_are_explained_in_their_place(of_calls, tiny_model, tmp_path):
    ended = of_calls("--track t.bw")
    assert "3 records" in ended.err
    windows = [GENOME[7:27], reverse_complement(GENOME[40:60]), reverse_complement((GENOME * 2)[80:100])]
    records = [record(w, f"promoter_{i}") for i, w in enumerate(windows, 1)]
    expected = {e.id: e for e in explain_records(tiny_model, records, ExplainOptions(shuffles=0))}
    assert len(ended.rows) == 60
    tracks = {s: pyBigWig.open(str(tmp_path / f"t.{w}.bw")) for s, w in (("+", "plus"), ("-", "minus"))}
    for row in ended.rows:
        e, position = expected[row["record"]], int(row["genomic_position"])
        letter = GENOME[position]
        assert row["base"] == (letter if row["strand"] == "+" else reverse_complement(letter, DNA))
        assert float(row["score"]) == pytest.approx(e.scores[int(row["position"])], rel=1e-4)
        seen = tracks[row["strand"]].values("chr", position, position + 1)[0]
        assert seen >= float(row["score"]) * 0.999
    crossing = [int(row["genomic_position"]) for row in ended.rows if row["record"] == "promoter_3"]
    assert crossing == [*range(9, -1, -1), *range(89, 79, -1)]


def test_what_the_scan_states_of_its_calls_is_repeated(of_calls, tiny_model, tmp_path):
    stated = [
        f"# model: tiny sha256:{tiny_model.sha256}",
        "# threshold: 0.7, as asked",
        "# calls: 3, 33333 per Mb",
        "# expected false calls: 2 per Mb <i>",
    ]
    head, *rows = (tmp_path / "c.gff3").read_text().splitlines()
    write(tmp_path / "c.gff3", "\n".join([head, *stated, *rows, "# threshold: 0.1, below the calls"]))
    ended = of_calls("--html page.html")
    assert ended.facts["scan threshold"] == "0.7, as asked"
    assert ended.facts["scan expected false calls"] == "2 per Mb <i>"
    assert "c.gff3 states threshold: 0.7, as asked; expected false calls: 2 per Mb <i>\n" in ended.err
    page = (tmp_path / "page.html").read_text()
    assert page.index("<dt>Threshold<dd>0.7, as asked") < page.index("<section id=verdict ")
    assert "<dt>Expected false calls<dd>2 per Mb &lt;i&gt;" in page
    write(tmp_path / "c.gff3", "\n".join([head, "# model: other sha256:0", "# threshold: 0.7", *rows]))
    ended = of_calls("--html page.html")
    missing = "does not state the precision or the false calls to expect"
    assert f"caution: c.gff3 {missing}" in ended.err
    assert "caution: c.gff3 has the calls of another model or version: other" in ended.err
    assert "scan lacks" in ended.facts
    assert missing in (tmp_path / "page.html").read_text()


# --- limits ----------------------------------------------------------------------------------------


def test_an_empty_file_gives_valid_empty_outputs_where_asked(explain, tmp_path):
    write(tmp_path / "e.fa", "")
    write(tmp_path / "none.gff3", "##gff-version 3\n")
    explain(
        "e.fa --allow-empty --out o.tsv --html r.html --heads h --plot p.png --track t.bw --motifs m.meme"
    )
    assert table((tmp_path / "o.tsv").read_text()) == []
    assert (tmp_path / "r.html").stat().st_size > 1000
    assert explain("in.fa --calls none.gff3 --allow-empty").rows == []


def test_a_composition_is_named_as_what_rollout_does_not_show(run, explain, tiny_model, tmp_path):
    config = ModelConfig(d_model=8, heads=2, layers=1, max_length=20, composition=("whole",))
    card = replace(tiny_model.card, name="composed", model=config, site=None, domain=None, self_test={})
    save_model(tmp_path / "m.safetensors", (build_network(config).eval(),), card)
    composed = run.to("explain in.fa --model m.safetensors --shuffles 0")
    assert "caution: model 'composed' reads the composition" in composed("--method rollout --method ism").err
    assert "caution" not in composed("--method ism").err
