"""``seqray explain`` from file to file, with the tiny random model of conftest."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyBigWig
import pytest
import torch

from seqray.cli.explain_options import METHODS as OFFERED
from seqray.cli.main import main
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.card import Card
from seqray.core.explanation import Explanation, Place
from seqray.core.model_config import ModelConfig
from seqray.core.records import SequenceRecord
from seqray.core.results import Call
from seqray.core.text import format_number
from seqray.explanations.methods import METHODS
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import explain_records
from seqray.io.explanations import CHECK_COLUMNS, EXPLANATION_COLUMNS, HEAD_COLUMNS, ScoreTrack, ranks
from seqray.io.gff3 import write_gff3
from seqray.modelfile.file import save_model
from seqray.models.build import build_model
from tables import table

RNG = np.random.default_rng(4)
RECORDS = [SequenceRecord(f"r{i}", "".join(RNG.choice(list("ACGT"), 20 - i % 4))) for i in range(12)]
GENOME = "".join(RNG.choice(list("ACGT"), 90))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.fa"
    path.write_text("".join(f">{r.id}\n{r.sequence}\n" for r in RECORDS))
    return path


@pytest.fixture
def explain(tiny_model_file, capfd):
    """Run the verb; gives exit status, standard output and standard error."""
    threads = torch.get_num_threads()

    def run(*words, model=tiny_model_file):
        status = main(["explain", *map(str, words), "--model", str(model)])
        return status, *capfd.readouterr()

    yield run
    torch.set_num_threads(threads)


def test_the_command_line_offers_every_method():
    assert tuple(METHODS) == OFFERED


def test_the_table_is_what_the_library_says(explain, source, tiny_model):
    status, out, err = explain(source, "--method", "rollout", "--method", "ism", "--shuffles", 3)
    rows = table(out)
    assert status == 0
    assert list(rows[0]) == list(EXPLANATION_COLUMNS)
    expected = []
    for method in ("rollout", "ism"):
        expected += explain_records(tiny_model, RECORDS, ExplainOptions(methods=(method,), shuffles=3))
    by_key = {(e.id, e.method): e for e in expected}
    assert len(rows) == 2 * sum(len(r) for r in RECORDS)
    for row in rows:
        e, i = by_key[row["record"], row["method"]], int(row["position"])
        assert float(row["score"]) == pytest.approx(e.scores[i], rel=1e-4, abs=1e-6)
        assert int(row["rank"]) == 1 + (e.scores > e.scores[i]).sum() + (e.scores[:i] == e.scores[i]).sum()
        assert float(row["ism_delta"]) == pytest.approx(e.effects[i].sum() / 3, rel=1e-3, abs=1e-5)
        assert (float(row["p"]), float(row["q"])) == pytest.approx((e.p[i], e.q[i]), rel=1e-4)
        assert row["base"] == e.sequence[i]
        assert row["sign"] == ("." if row["method"] == "rollout" else "+" if e.scores[i] > 0 else "-")
        assert (row["member"], row["class"], row["contig"], row["genomic_position"]) == (
            "mean",
            "promoter",
            ".",
            ".",
        )
    assert "12 records, 0 skipped" in err
    assert err.count("random rankings") == 2


def test_letters_that_are_not_read_have_no_values(explain, tiny_model, tmp_path):
    """The model reads 20 letters of 30."""
    model, path = tmp_path / "anywhere.safetensors", tmp_path / "long.fa"
    save_model(model, tiny_model.networks, replace(tiny_model.card, site=None))
    path.write_text(">a\nACGTACGTACAAAAATTTTTGGGGGCCCCC\n>b\nACGTACGTACGGGGGCCCCC\n")
    files = ["--track", tmp_path / "t.bedgraph", "--plot", tmp_path / "p.svg", "--html", tmp_path / "o.html"]
    words = [path, "--truncate", "ends", "--method", "occlusion", "--method", "rollout"]
    status, out, err = explain(*words, *files, "--out", "-", model=model)
    assert status == 0
    assert "# truncate: ends: at most 20 letters of a record are read" in out.splitlines()
    assert "1 of 2 sequences are longer than 20 letters: their first 10 and last 10 are read" in err
    rows = [row for row in table(out) if row["record"] == "a"]
    for method in ("occlusion", "rollout"):
        found = [row for row in rows if row["method"] == method]
        columns = ("score", "rank", "sign", "ism_delta", "p", "q")
        assert {row[name] for row in found[10:20] for name in columns} == {"."}
        assert sorted(int(row["rank"]) for row in found[:10] + found[20:]) == [*range(1, 21)]
    track = (tmp_path / "t.occlusion.plus.bedgraph").read_text()
    assert "a\t9\t10\t" in track
    assert not any(f"a\t{i}\t" in track for i in range(10, 20))
    assert "nan" not in (tmp_path / "p.svg").read_text().lower()


def test_top_keeps_the_best_ranks(explain, source):
    _, out, _ = explain(source, "--top", 3, "--no-check", "--shuffles", 0)
    rows = table(out)
    assert len(rows) == 3 * len(RECORDS)
    assert {row["rank"] for row in rows} == {"1", "2", "3"}
    assert {(row["ism_delta"], row["p"], row["q"]) for row in rows} == {(".", ".", ".")}


def test_all_outputs_of_one_run(explain, source, tmp_path):
    files = ["o.tsv.gz", "r.html", "p.svg", "h.tsv", "m.meme", "m.tsv"]
    flags = ["--out", "--html", "--plot", "--heads", "--motifs", "--motifs"]
    words = [w for flag, name in zip(flags, files, strict=True) for w in (flag, tmp_path / name)]
    status, out, _ = explain(source, *words, "--track", tmp_path / "t.bw", "--shuffles", 2)
    assert (status, out) == (0, "")
    written = {path.name for path in tmp_path.iterdir()} - {"in.fa"}
    assert written == {*files, "o.faithfulness.tsv", "t.plus.bw", "t.minus.bw"}
    checks = table((tmp_path / "o.faithfulness.tsv").read_text())
    assert tuple(checks[0]) == CHECK_COLUMNS
    assert {"deletion_gain", "insertion_gain", "rank_correlation"} <= {c["measure"] for c in checks}
    assert "# verdict: rollout " in (tmp_path / "o.faithfulness.tsv").read_text()
    heads = table((tmp_path / "h.tsv").read_text())
    assert tuple(heads[0]) == HEAD_COLUMNS
    assert [(h["member"], h["layer"], h["head"], h["distance"]) for h in heads] == [
        ("1", "1", "1", "."),
        ("1", "1", "2", "."),
    ]
    assert "r11" in (tmp_path / "r.html").read_text()
    rows = table(gzip.decompress((tmp_path / "o.tsv.gz").read_bytes()).decode())
    track = pyBigWig.open(str(tmp_path / "t.plus.bw"))
    for row in rows:
        place = int(row["position"])
        assert track.values(row["record"], place, place + 1)[0] == pytest.approx(
            float(row["score"]), rel=1e-4
        )
    assert pyBigWig.open(str(tmp_path / "t.minus.bw")).header()["nBasesCovered"] == 0


def test_the_page_says_which_records_were_checked(explain, source, tiny_model, tmp_path):
    found = explain_records(tiny_model, RECORDS, ExplainOptions(shuffles=0))
    called = [e.label for e in found].count("promoter")
    page = tmp_path / "r.html"
    status, _, err = explain(source, "--html", page, "--out", tmp_path / "o.tsv", "--shuffles", 0)
    assert status == 0
    assert 0 < called < len(RECORDS)
    said = f"The checks use {called} of the {len(RECORDS)} records: those that are called promoter."
    assert f"seqray: t{said[1:-1]}\n" in err
    assert said in page.read_text()
    words = ("--html", page, "--out", tmp_path / "o.tsv", "--shuffles", 0)
    assert explain(source, *words, "--class", "called", "--check-records", 5)[0] == 0
    assert f"The checks use 5 of the {len(RECORDS)} records, drawn at random." in page.read_text()


def test_the_same_run_gives_the_same_bytes(explain, source, tmp_path):
    contents = []
    for _ in range(2):
        words = ["--out", tmp_path / "o.tsv", "--html", tmp_path / "r.html", "--plot", tmp_path / "p.svg"]
        assert explain(source, *words, "--shuffles", 2)[0] == 0
        names = ("o.tsv", "o.faithfulness.tsv", "r.html", "p.svg")
        contents.append([(tmp_path / name).read_bytes() for name in names])
    assert contents[0] == contents[1]


def test_several_methods_have_a_track_each(explain, source, tmp_path):
    words = [
        "--method",
        "rollout",
        "--method",
        "occlusion",
        "--track",
        tmp_path / "t.bedgraph.gz",
        "--no-check",
    ]
    assert explain(source, *words, "--shuffles", 0)[0] == 0
    assert {p.name for p in tmp_path.glob("t.*")} == {
        f"t.{method}.{strand}.bedgraph.gz"
        for method in ("rollout", "occlusion")
        for strand in ("plus", "minus")
    }


# --- calls -----------------------------------------------------------------------------------------


@pytest.fixture
def genome(tmp_path):
    """A genome and calls on both strands, the last one across the origin of a circle."""
    (tmp_path / "g.fa").write_text(f">other\nACGT\n>chr\n{GENOME}\n")
    calls = [
        Call("chr", s, s + 20, strand, s, 0.9, "promoter") for s, strand in ((7, "+"), (40, "-"), (80, "-"))
    ]
    write_gff3(tmp_path / "c.gff3", calls, contigs={"chr": 90}, circular=["chr"])
    return tmp_path / "g.fa", tmp_path / "c.gff3"


def test_calls_are_explained_in_their_place(explain, genome, tiny_model, tmp_path):
    fasta, calls = genome
    status, out, err = explain(
        fasta, "--calls", calls, "--no-check", "--track", tmp_path / "t.bw", "--shuffles", 0
    )
    assert (status, "3 records" in err) == (0, True)
    windows = [GENOME[7:27], reverse_complement(GENOME[40:60]), reverse_complement((GENOME * 2)[80:100])]
    records = [SequenceRecord(f"promoter_{i}", w) for i, w in enumerate(windows, 1)]
    expected = {e.id: e for e in explain_records(tiny_model, records, ExplainOptions(shuffles=0))}
    rows = table(out)
    assert len(rows) == 60
    tracks = {s: pyBigWig.open(str(tmp_path / f"t.{w}.bw")) for s, w in (("+", "plus"), ("-", "minus"))}
    for row in rows:
        e, position = expected[row["record"]], int(row["genomic_position"])
        letter = GENOME[position]
        assert row["base"] == (letter if row["strand"] == "+" else reverse_complement(letter, DNA))
        assert float(row["score"]) == pytest.approx(e.scores[int(row["position"])], rel=1e-4)
        seen = tracks[row["strand"]].values("chr", position, position + 1)[0]
        assert seen >= float(row["score"]) * 0.999
    crossing = [int(row["genomic_position"]) for row in rows if row["record"] == "promoter_3"]
    assert crossing == [*range(9, -1, -1), *range(89, 79, -1)]


def test_what_the_scan_states_of_its_calls_is_repeated(explain, genome, tiny_model, tmp_path):
    fasta, calls = genome
    stated = [
        "# seqray 0",
        f"# model: tiny sha256:{tiny_model.sha256}",
        "# threshold: 0.7, as asked",
        "# calls: 3, 33333 per Mb",
        "# expected false calls: 2 per Mb <i>",
    ]
    words = ["--no-check", "--shuffles", 0, "--html", tmp_path / "page.html"]
    head, *rows = calls.read_text().splitlines()
    calls.write_text("\n".join([head, *stated, *rows, "# threshold: 0.1, below the calls"]))
    status, out, err = explain(fasta, "--calls", calls, *words)
    assert status == 0
    assert "# scan threshold: 0.7, as asked\n# scan expected false calls: 2 per Mb <i>\n" in out
    assert (
        "calls are right; c.gff3 states threshold: 0.7, as asked; expected false calls: 2 per Mb <i>\n" in err
    )
    page = (tmp_path / "page.html").read_text()
    assert page.index("<dt>Threshold<dd>0.7, as asked") < page.index("<section id=verdict ")
    assert "<dt>Expected false calls<dd>2 per Mb &lt;i&gt;" in page

    calls.write_text("\n".join([head, "# model: other sha256:0", "# threshold: 0.7", *rows]))
    _, out, err = explain(fasta, "--calls", calls, *words)
    missing = "does not state the precision or the false calls to expect"
    assert f"caution: c.gff3 {missing}, so it is not known how many of the calls are right" in err
    assert "caution: c.gff3 has the calls of another model or version: other" in err
    assert "# scan lacks: the precision or the false calls to expect\n" in out
    assert missing in (tmp_path / "page.html").read_text()


def test_records_that_are_no_calls_have_no_statement_of_a_scan(explain, genome, tmp_path):
    (tmp_path / "one.fa").write_text(f">one\n{GENOME[:20]}\n")
    _, out, err = explain(
        tmp_path / "one.fa", "--no-check", "--shuffles", 0, "--html", tmp_path / "page.html"
    )
    assert "# scan" not in out
    assert "another question" not in err
    assert "Are these calls right?" not in (tmp_path / "page.html").read_text()


def test_a_file_without_calls_is_told_or_gives_an_empty_output(explain, genome, tmp_path):
    (tmp_path / "none.gff3").write_text("##gff-version 3\nchr\tx\tgene\t1\t20\t.\t+\t.\tID=g\n")
    words = [genome[0], "--calls", tmp_path / "none.gff3"]
    status, out, err = explain(*words)
    assert (status, out) == (2, "")
    assert "none.gff3: holds no calls of 'seqray scan'; --allow-empty" in err
    status, out, _ = explain(*words, "--allow-empty")
    assert (status, table(out)) == (0, [])


def test_overlapping_calls_keep_the_higher_score(tmp_path):
    track = ScoreTrack()
    for start, scores in ((2, [0.1, 0.9, 0.5]), (3, [0.2, 0.7, 0.6])):
        place = Place("c", start, start + 3, "+", 10)
        track.add(
            Explanation(0, "r", "ACG", "p", "p", 0.5, "rollout", "mean", False, np.array(scores), place=place)
        )
    track.write(tmp_path / "t.bedgraph", (), "x")
    lines = (tmp_path / "t.plus.bedgraph").read_text().splitlines()[1:]
    assert lines == ["c\t2\t3\t0.1", "c\t3\t4\t0.9", "c\t4\t5\t0.7", "c\t5\t6\t0.6"]


def test_ranks_begin_at_one():
    np.testing.assert_array_equal(ranks(np.array([0.5, 2.0, 0.5, -1.0])), [2, 1, 3, 4])
    assert format_number(0.123456789) == "0.123457"


# --- bad input and endings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "x.csv"], "does not end in the suffix of a known format; use .tsv, .tsv.gz"),
        (["--html", "x.pdf"], "use .html"),
        (["--plot", "x.gif"], "use .png, .svg, .pdf"),
        (["--motifs", "x.txt"], "use .meme, .jaspar, .tsv"),
        (["--track", "x.wig"], "does not end in the suffix of a known track format"),
        (["--class", "enhancer"], "has no class 'enhancer'"),
        (["--method", "ism", "--method", "ism"], "each once"),
        (["--residual", "1"], "residual share is 1"),
        (["--calls", "-"], "calls are read from a file"),
        (["--calls", "none.gff3"], "none.gff3"),
        (["--track", "t.bw", "--duplicates", "keep"], "a track requires unique ids"),
        (["--heads", "in.fa"], "is an input and would be overwritten"),
        (["--no-check", "--faithfulness", "f.tsv"], "--no-check and --faithfulness can't both be given"),
        (["--no-check", "--check-records", "9"], "--no-check and --check-records can't both be given"),
        (["--best-calls", "2"], "--best-calls is given without --calls; name the calls of a scan"),
        (["--html-records", "3"], "--html-records is given without --html or --plot; give one of them"),
        (["--block", "9"], "--block changes nothing with --method rollout; leave it out, or add"),
        (["--steps", "9"], "--steps changes nothing with --method rollout; leave it out, or add"),
        (["--method", "ism", "--spread", "span"], "--spread changes nothing with --method ism; leave it out"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_nothing(explain, source, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = explain(source, *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["in.fa"]


def test_a_record_longer_than_the_window_is_refused_whole(explain, tmp_path):
    (tmp_path / "long.fa").write_text(f">a\nACGTACGTAC\n>b\n{'A' * 21}\n")
    status, _, err = explain(tmp_path / "long.fa", "--out", tmp_path / "o.tsv")
    assert status == 2
    assert "record 'b'" in err
    assert "21 letters" in err
    assert not (tmp_path / "o.tsv").exists()


def test_an_empty_file_gives_valid_empty_outputs_where_asked(explain, tmp_path):
    (tmp_path / "e.fa").write_text("")
    assert explain(tmp_path / "e.fa")[0] == 2
    words = [
        "--allow-empty",
        "--out",
        tmp_path / "o.tsv",
        "--html",
        tmp_path / "r.html",
        "--heads",
        tmp_path / "h",
    ]
    words += ["--plot", tmp_path / "p.png", "--track", tmp_path / "t.bw", "--motifs", tmp_path / "m.meme"]
    assert explain(tmp_path / "e.fa", *words)[0] == 0
    assert table((tmp_path / "o.tsv").read_text()) == []
    assert (tmp_path / "r.html").stat().st_size > 1000


def test_a_hostile_name_is_shown_and_not_run(explain, tmp_path):
    (tmp_path / "x.fa").write_text("><script>alert(1)</script>\nACGTACGTACGTACGT\n")
    assert explain(tmp_path / "x.fa", "--html", tmp_path / "r.html", "--no-check")[0] == 0
    page = (tmp_path / "r.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_standard_input_and_a_closed_pipe(source, tiny_model_file):
    command = f"{sys.executable} -m seqray explain - -m {tiny_model_file} --no-check --shuffles 0 --quiet"
    done = subprocess.run(
        f"{command} < {source} | head -n 3", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("# seqray")
    assert done.stderr == ""


def test_quiet_says_nothing(explain, source):
    assert explain(source, "--quiet", "--shuffles", 0, "--top", 1)[2] == ""


def test_a_composition_is_named_as_what_rollout_does_not_show(source, tmp_path, capfd):
    config = ModelConfig(d_model=8, heads=2, layers=1, max_length=20, composition=("whole",))
    card = Card(
        name="composed", classes=("promoter", "background"), positive="promoter", window=20, model=config
    )
    save_model(tmp_path / "m.safetensors", (build_model(config).eval(),), card)
    words = ["explain", str(source), "--model", str(tmp_path / "m.safetensors"), "--shuffles", "0"]
    assert main([*words, "--method", "rollout", "--method", "ism"]) == 0
    caution = "caution: model 'composed' reads the composition of the sequence beside its attention"
    assert f"{caution}, and rollout can't show that part; ism and occlusion do" in capfd.readouterr().err
    assert main([*words, "--method", "ism"]) == 0
    assert "caution" not in capfd.readouterr().err
