"""The scan workflow run by Snakemake itself: outputs, a second run, a report, as a module, wrong settings."""

from pathlib import Path

import pytest
import yaml

from machine import read_table
from seqray.cli.main import main
from tables import fasta, letters, write

ROOT = Path(__file__).parents[2] / "workflows" / "scan"
SNAKEFILE = ROOT / "workflow" / "Snakefile"
SETTINGS = {
    "scan": {"stride": 5, "threshold": 0.3, "track": "bedgraph", "shards": 3},
    "explain": {"calls": 2},
}
SHEET = "sample\tfasta\tcircular\nalpha\tdata/alpha.fa\nbeta\tdata/beta.fa\tyes\n"
GAMMA = "gamma\tdata/alpha.fa\n"


def make_project(folder: Path, model: Path, sheet: str = SHEET, **settings: object) -> Path:
    """Lay out what a user edits: the configuration, the sheet and two files of sequences."""
    (folder / "config").mkdir(parents=True)
    (folder / "data").mkdir()
    config = {
        "samples": "config/samples.tsv",
        "models": [str(model)],
        "resources": {"threads": 1},
        **settings,
    }
    write(folder / "config" / "config.yaml", yaml.safe_dump(config))
    write(folder / "config" / "samples.tsv", sheet)
    alpha = {"one": letters(400), "two": letters(300, 1), "tiny": letters(5)}
    write(folder / "data" / "alpha.fa", fasta(alpha))
    write(folder / "data" / "beta.fa", fasta({"ring": letters(250, 2)}))
    return folder


@pytest.fixture(scope="module")
def finished(run, seqray_forks, tiny_model_file, tmp_path_factory) -> Path:
    """A project after its first run."""
    folder = make_project(tmp_path_factory.mktemp("project") / "run", tiny_model_file, **SETTINGS)
    done = run(folder, "--cores", "1", commands=seqray_forks.folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_sample_has_its_results(finished):
    for sample in ("alpha", "beta"):
        folder = finished / "results" / sample / "tiny"
        calls = read_table(folder / "calls.tsv")
        features = [
            line for line in (folder / "calls.gff3").read_text().splitlines() if "\tpromoter\t" in line
        ]
        assert len(features) == len(calls) > 0
        assert all(float(call["score"]) >= 0.3 for call in calls)
        assert {path.name for path in folder.glob("score.*")} == {
            "score.plus.bedgraph",
            "score.minus.bedgraph",
        }
        assert (finished / "results" / "logs" / "scan" / sample / "tiny" / "1-of-3.log").read_text()
        assert read_table(finished / "results" / "benchmarks" / "scan" / sample / "tiny" / "1-of-3.tsv")
        best = sorted(calls, key=lambda call: -float(call["score"]))[:2]
        explained = [row["record"] for row in read_table(folder / "explanations.tsv")]
        assert list(dict.fromkeys(explained)) == [call["id"] for call in best]
        assert "</html>" in (folder / "explanations.html").read_text()
    skipped = read_table(finished / "results" / "alpha" / "tiny" / "skipped.tsv")
    assert [row["id"] for row in skipped] == ["tiny"]
    assert not list((finished / "results").rglob("*.shard"))


def test_the_results_are_those_of_the_single_command(finished, tiny_model_file, tmp_path):
    for sample, options in (("alpha", []), ("beta", ["--circular"])):
        folder = tmp_path / sample
        folder.mkdir()
        words = ["scan", f"{finished}/data/{sample}.fa", "--model", str(tiny_model_file), "--stride", "5"]
        words += ["--threshold", "0.3", *options, "--threads", "1"]
        words += f"--out {folder}/calls.gff3 --out {folder}/calls.tsv --skipped {folder}/skipped.tsv".split()
        assert main([*words, "--track", str(folder / "score.bedgraph")]) == 0
        for path in folder.iterdir():
            assert path.read_bytes() == (finished / "results" / sample / "tiny" / path.name).read_bytes()


def test_the_sheet_reaches_the_scan(finished):
    alpha, beta = ((finished / "results" / s / "tiny" / "calls.gff3").read_text() for s in ("alpha", "beta"))
    assert "Is_circular=true" in beta
    assert "Is_circular=true" not in alpha
    assert "--stride 5" in alpha


def test_the_summary_has_a_row_per_sample(finished):
    rows = read_table(finished / "results" / "summary.tsv")
    assert [(r["sample"], r["sequences"], r["letters"]) for r in rows] == [
        ("alpha", "2", "700"),
        ("beta", "1", "250"),
    ]
    for row in rows:
        assert read_table(finished / "results" / row["sample"] / "summary.tsv") == [row]
        assert row["model"] == "tiny"
        calls = read_table(finished / "results" / row["sample"] / "tiny" / "calls.tsv")
        assert int(row["calls"]) == len(calls)
        assert float(row["threshold"]) == 0.3
        low, rate, high = (float(row[f"false_calls_per_mb{end}"]) for end in ("_low", "", "_high"))
        assert 0 <= low <= rate <= high
    # 250 positions on the circle: the number of calls over them, to six digits
    assert float(rows[1]["calls_per_mb"]) == pytest.approx(int(rows[1]["calls"]) / 250e-6, rel=1e-3)


def test_a_sample_that_fails_has_a_row_until_it_is_mended(run, seqray_forks, tiny_model_file, tmp_path):
    folder = make_project(
        tmp_path / "damaged", tiny_model_file, SHEET + GAMMA, scan={"threshold": 0.3}, explain={"calls": 0}
    )
    damaged = ">ring\nACGT!\n"
    write(folder / "data" / "beta.fa", damaged)
    summary = folder / "results" / "summary.tsv"
    done = run(folder, "--cores", "1", "--keep-going", commands=seqray_forks.folder)
    assert done.returncode != 0
    alpha, beta = (next(r for r in read_table(summary) if r["sample"] == s) for s in ("alpha", "beta"))
    assert [alpha] == read_table(folder / "results" / "alpha" / "summary.tsv")
    why = "data/beta.fa: record 'ring': unknown letter '!' at position 5; "
    assert beta.pop("cautions").startswith(why)
    about = {"sample": "beta", "model": "tiny", "status": "failed"}
    assert {"cautions": ".", **beta} == {**dict.fromkeys(alpha, "."), **about}
    assert "failed" in summary.with_suffix(".html").read_text()
    write(folder / "data" / "beta.fa", fasta({"ring": letters(250, 2)}))
    done = run(folder, "--cores", "1", commands=seqray_forks.folder)
    assert done.returncode == 0, done.stderr
    assert [row["model"] for row in read_table(summary)] == ["tiny"] * 3
    write(folder / "data" / "beta.fa", damaged)  # what the run before made of it does not count
    for _ in range(2):
        done = run(folder, "--cores", "1", "--keep-going", commands=seqray_forks.folder)
        assert done.returncode != 0
        assert {row["sample"] for row in read_table(summary) if row["calls"] == "."} == {"beta"}
        assert not [path for path in (folder / "results" / "beta").rglob("*") if path.is_file()]


def test_a_second_run_does_nothing(run, finished):
    files = sorted(path for path in (finished / "results").rglob("*") if path.is_file())
    before = [path.stat().st_mtime_ns for path in files]
    done = run(finished, "--cores", "1")
    assert done.returncode == 0
    assert "Nothing to be done" in done.stderr
    assert [path.stat().st_mtime_ns for path in files] == before


@pytest.mark.parametrize(
    ("setting", "files"),
    [
        ({"html": True}, ["calls.html"]),
        ({"track": "bigwig"}, ["score.plus.bw", "score.minus.bw"]),
        ({"html": False}, []),
    ],
)
def test_a_changed_setting_makes_its_files(run, finished, tmp_path, setting, files):
    changed = write(tmp_path / "changed.yaml", yaml.safe_dump({"scan": setting}))
    done = run(finished, "--cores", "1", "--dry-run", "--configfile", str(changed))
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    assert all(f"results/alpha/tiny/{name}" in told for name in files)
    assert ("Nothing to be done" in told) == (not files)


def test_a_threshold_of_a_model_takes_the_place_of_the_shared_one(run, tmp_path, tiny_model_file):
    scan = {"threshold": 0.3, "extra": {"tiny": ["--threshold", 0.95]}}
    models = [str(tiny_model_file), "ecoli-promoter"]
    folder = make_project(tmp_path / "own", tiny_model_file, models=models, scan=scan)
    done = run(folder, "--cores", "1", "--dry-run", "--printshellcmds")
    assert done.returncode == 0, done.stderr
    scans = [line for line in (done.stdout + done.stderr).splitlines() if "seqray scan" in line]
    assert len(scans) == 4
    for line in scans:
        own = str(tiny_model_file) in line
        assert ("--threshold 0.95" in line, "--threshold 0.3" in line) == (own, not own)


def test_a_run_elsewhere_gives_the_same_bytes(run, seqray_forks, finished, tiny_model_file, tmp_path):
    other = make_project(tmp_path / "elsewhere", tiny_model_file, **SETTINGS)
    done = run(other, "--cores", "2", "--set-scatter", "shards=1", commands=seqray_forks.folder)
    assert done.returncode == 0, done.stderr
    names = ("calls.gff3", "calls.tsv", "score.plus.bedgraph", "explanations.tsv", "explanations.html")
    for name in ("summary.tsv", "summary.html", *(f"{s}/tiny/{n}" for s in ("alpha", "beta") for n in names)):
        assert (other / "results" / name).read_bytes() == (finished / "results" / name).read_bytes()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"scan": {"stride": 0}}, "0 is less than the minimum of 1"),
        ({"scan": {"strid": 5}}, "'strid' was unexpected"),
        ({"scan": 5}, "5 is not of type 'object'"),
        ({"scan": {"fdr": 0.1, "threshold": 0.5}}, "scan: threshold and fdr can't both be set"),
        ({"sheet": "sample\tfasta\n../up\tdata/alpha.fa\n"}, "'../up'"),
        ({"sheet": "sample\tfasta\nbenchmarks\tdata/alpha.fa\n"}, "line 2: sample 'benchmarks'"),
        ({"sheet": "sample\tfasta\na\tdata/alpha.fa\na\tdata/beta.fa\n"}, "'a' has two rows"),
        (
            {"sheet": "#\nsample\tfasta\tcircular\n\na\tdata/alpha.fa\nb\tdata/beta.fa\tYes\n"},
            "line 5: sample 'b'",
        ),
        ({"sheet": "sample,fasta\na,data/alpha.fa\n"}, "line 1: no column 'sample'"),
        ({"models": ["bacteria-genome"], "scan": {"stride": 5}}, "--stride"),
        ({"models": ["ecoli-promoter", "bacteria-genome"], "scan": {"fdr": 0.1}}, "--fdr"),
        ({"scan": {"extra": {"tiny": ["--strand=plus", "--precision=0.7"]}}}, "--precision"),
        ({"sheet": "sample\nalpha\n"}, "'fasta' is a required property"),
        ({"sheet": "sample\tfasta\n"}, "the sheet has no rows"),
        (
            {"sheet": "sample\tfasta\na\tdata/none.fa\n"},
            "config/samples.tsv: line 2: sample 'a': data/none.fa: no such file",
        ),
        (
            {"sheet": "sample\tfasta\tgenes\na\tdata/alpha.fa\tnone.gff3\n"},
            "line 2: sample 'a': none.gff3: no such file",
        ),
        ({"models": ["a/x.safetensors"]}, "models: a/x.safetensors: no such file"),
        (
            {"models": ["bacteria-genome", "ecoli-promoter"], "scan": {"genes_table": True}},
            "models, scan.genes_table: 'ecoli-promoter' is a model of windows",
        ),
        ({"models": ["a/x.safetensors", "b/x.safetensors"]}, "two models of the configuration"),
        ({"models": ["a/my model.safetensors"]}, "'a/my model.safetensors' can't name results"),
        ({"models": ["a/mod\u00e8le.safetensors"]}, "letters, digits, '.', '_' and '-'"),
        ({"models": [".."]}, "'..' can't name results"),
        ({"models": ["ecoli-promotor"]}, "did you mean 'ecoli-promoter'?"),
        ({"samples": "config/none.tsv"}, "config/none.tsv: the sheet can't be read"),
        ({"samples": "data/latin.tsv"}, "data/latin.tsv: the sheet is not text in UTF-8"),
        ({"outdir": ""}, "'' should be non-empty"),
        ({"scan": {"extra": {"other": ["--strand", "plus"]}}}, "scan.extra: 'other'"),
        ({"scan": {"extra": {"tiny": ["--out=x.tsv"]}}}, "scan.extra: '--out' is set by the workflow"),
        ({"scan": {"extra": {"tiny": ["--stride", 1]}}}, "scan.extra: '--stride' is set by the workflow"),
        ({"explain": {"extra": {"tiny": ["-ox.tsv"]}}}, "explain.extra: '-o' is set by the workflow"),
        ({"explain": {"extra": {"tiny": "--genes"}}}, "'--genes' is not of type 'array'"),
    ],
)
def test_a_wrong_project_stops_before_any_work(run, tmp_path, tiny_model_file, settings, complaint):
    folder = make_project(tmp_path / "wrong", tiny_model_file, **settings)
    (folder / "data" / "latin.tsv").write_bytes(b"sample\tfasta\na\tdata/\xe9.fa\n")
    done = run(folder, "--cores", "1")
    assert done.returncode != 0
    assert complaint in done.stderr
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("track", "option"), [("none", ""), ("bigwig", " --track 'my results/alpha/tiny/score.bw'")]
)
def test_a_folder_of_results_with_a_space_stays_one_word(run, tmp_path, tiny_model_file, track, option):
    marked = "\ufeff" + SHEET  # with a byte order mark, as a spreadsheet program writes it
    folder = make_project(
        tmp_path / "space", tiny_model_file, marked, outdir="my results", scan={"track": track}
    )
    done = run(folder, "--cores", "1", "--dry-run", "--printshellcmds")
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    log = "'my results/logs/gather/alpha/tiny.log'"
    assert f"--skipped 'my results/alpha/tiny/skipped.tsv'{option} > {log}" in " ".join(told.split())


def test_genes_and_species_of_the_sheet_go_to_models_that_read_them(run, tmp_path, tiny_model_file):
    sheet = (
        "sample\tfasta\tgenes\tspecies\nalpha\tdata/alpha.fa\tdata/alpha.gff3\tAn E\nbeta\tdata/beta.fa\t\t\n"
    )
    models = [str(tiny_model_file), "bacteria-genome"]
    folder = make_project(tmp_path / "genes", tiny_model_file, sheet, models=models, explain={"calls": 1})
    write(folder / "data" / "alpha.gff3", "##gff-version 3\n")
    done = run(folder, "--cores", "1", "--dry-run", "--printshellcmds")
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    words = [line.split() for line in told.splitlines() if "--genes" in line]
    assert {line[line.index("seqray") + 1] for line in words} == {"scan", "explain"}
    assert all({"data/alpha.fa", "data/alpha.gff3", "bacteria-genome"} <= {*line} for line in words)
    [named] = (line for line in told.splitlines() if "--species" in line)
    assert (
        "seqray scan data/alpha.fa --model bacteria-genome --genes data/alpha.gff3 --species 'An E'" in named
    )


@pytest.fixture(scope="module")
def two_models(run, seqray_forks, tiny_model_file, tmp_path_factory) -> Path:
    """A project of a model of windows and a locator, with a page and further options for the locator."""
    folder = make_project(
        tmp_path_factory.mktemp("models") / "run",
        tiny_model_file,
        "sample\tfasta\nalpha\tdata/alpha.fa\n",
        models=[str(tiny_model_file), "bacteria-genome"],
        scan={
            "threshold": 0.3,  # of the model of windows alone
            "html": True,
            "extra": {"bacteria-genome": ["--per-kb", 1, "--genes", "none"]},
        },
        explain={"calls": 1, "extra": {"bacteria-genome": ["--genes", "none", "--shuffles", 0]}},
    )
    done = run(folder, "--cores", "1", commands=seqray_forks.folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_two_models_have_a_row_each(two_models):
    rows = read_table(two_models / "results" / "summary.tsv")
    assert [(row["sample"], row["model"]) for row in rows] == [
        ("alpha", "tiny"),
        ("alpha", "bacteria-genome"),
    ]
    assert read_table(two_models / "results" / "alpha" / "summary.tsv") == rows
    assert rows[0]["expected_precision"] == "."
    assert 0 < float(rows[1]["expected_precision"]) <= 1


def test_further_options_reach_their_model_alone(two_models):
    tiny, locator = (
        (two_models / "results" / "alpha" / model / "calls.gff3").read_text()
        for model in ("tiny", "bacteria-genome")
    )
    assert "--per-kb 1 --genes none" in locator
    assert "--per-kb" not in tiny
    assert "</html>" in (two_models / "results" / "alpha" / "bacteria-genome" / "calls.html").read_text()


def test_a_table_of_genes_is_made_after_a_finished_run(run, two_models, tmp_path):
    settings = {"models": ["bacteria-genome"], "scan": {"genes_table": True}}
    changed = write(tmp_path / "changed.yaml", yaml.safe_dump(settings))
    done = run(two_models, "--cores", "1", "--dry-run", "--configfile", str(changed))
    assert done.returncode == 0, done.stderr
    assert "results/alpha/bacteria-genome/genes.tsv" in done.stdout + done.stderr


def test_an_empty_section_takes_the_defaults(run, tmp_path, tiny_model_file):
    folder = make_project(tmp_path / "plain", tiny_model_file, scan=None)
    done = run(folder, "--cores", "1", "--dry-run", "--printshellcmds")
    assert done.returncode == 0, done.stderr
    assert "--threads 1" in done.stdout + done.stderr
    assert "--stride" not in done.stdout + done.stderr


def test_one_report_shows_summary_calls_and_explanations(run, finished, tmp_path):
    page = tmp_path / "report.html"
    done = run(finished, "--cores", "1", "--report", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    for words in (
        "Sites that models find in genomes",
        "Explanations of the top calls",
        "Summary",
        "calls.gff3",
    ):
        assert words in text


MODULE = """
configfile: "config/other.yaml"

rule beta:
    output: "data/beta.fa"
    log: "beta.log"
    shell: "echo '>ring' > {{output}} 2> {{log}}"

module scan:
    snakefile: {snakefile!r}
    config: config["scan"]

use rule * from scan as scan_*

rule all:
    default_target: True
    input: rules.scan_all.input
    output: "count.txt"
    log: "count.log"
    shell: "grep -c promoter results/alpha/tiny/calls.tsv > {{output}} 2> {{log}}"
"""


def test_another_workflow_takes_it_as_a_module(snakemake, tmp_path, tiny_model_file):
    folder = make_project(tmp_path / "module", tiny_model_file, **SETTINGS)
    settings = yaml.safe_load((folder / "config" / "config.yaml").read_text())
    (folder / "config" / "other.yaml").write_text(yaml.safe_dump({"scan": settings}))
    (folder / "config" / "config.yaml").unlink()
    (folder / "data" / "beta.fa").unlink()  # which a rule makes
    (folder / "Snakefile").write_text(MODULE.format(snakefile=str(SNAKEFILE)))
    done = snakemake(folder / "Snakefile", folder, "--cores", "1", "--dry-run")
    assert done.returncode == 0, done.stderr
    counts = dict(line.split()[:2] for line in done.stdout.splitlines() if line.startswith("scan_"))
    assert counts["scan_scan"] == "6"
    assert counts["scan_gather"] == counts["scan_explain"] == "2"


def test_the_linter_is_content(run, tmp_path):
    done = run(ROOT / ".test", "--lint", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr + done.stdout
