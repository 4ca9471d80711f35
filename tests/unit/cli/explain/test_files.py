"""Names of the files that ``seqray explain`` writes."""

import argparse

from seqray.cli.explain_options import ExplainRequest, faithfulness_path, output_paths, track_names


def request_of(*words):
    parser = argparse.ArgumentParser()
    ExplainRequest.add_arguments(parser)
    return ExplainRequest.of(parser.parse_args(["x.fa", "--model", "m", *words]), words)


def test_a_track_is_named_for_its_method_where_there_are_several():
    one = request_of("--track", "t.bw", "--method", "ism")
    two = request_of("--track", "t.bedgraph.gz", "--method", "ism", "--method", "rollout")
    assert (track_names(one, "ism"), track_names(two, "ism")) == (["t.bw"], ["t.ism.bedgraph.gz"])
    assert output_paths(two) == [
        "-",
        *("t.ism.plus.bedgraph.gz", "t.ism.minus.bedgraph.gz"),
        *("t.rollout.plus.bedgraph.gz", "t.rollout.minus.bedgraph.gz"),
    ]


def test_the_table_of_the_checks_is_beside_the_scores_unless_it_is_named():
    assert faithfulness_path(request_of()) is None
    assert faithfulness_path(request_of("--out", "a.tsv.gz")) == "a.faithfulness.tsv"
    assert faithfulness_path(request_of("--out", "a.tsv", "--faithfulness", "b.tsv")) == "b.tsv"
    assert faithfulness_path(request_of("--out", "a.tsv", "--no-check")) is None
