"""Scores along contigs: `seqray.io.scores`, read back by pyBigWig and by hand."""

import gzip
import struct

import numpy as np
import pyBigWig
import pysam
import pytest

from seqray.core.errors import InputError
from seqray.io.scores import TrackWriter, track_paths


def write(path, name="tiny"):
    """One contig scored on both strands, with a gap and values beyond its ends; a bare one; a full one."""
    with TrackWriter(path, ["seqray x"], name) as track:
        track.begin("chr1", 100)
        track.add("chr1", "+", -5, [0.1, np.nan, 0.25], span=10)
        track.add("chr1", "-", 3, [1e-7], span=1)
        track.add("chr1", "+", 85, [0.5, 0.75, 1.0], span=10)
        track.begin("chr2", 30)
        track.begin("chr3", 30)
        track.add("chr3", "+", 0, np.array([1.0, 0.0], dtype=np.float32), span=15)


PLUS = {
    "chr1": [(0, 5, 0.1), (15, 25, 0.25), (85, 95, 0.5), (95, 100, 0.75)],
    "chr3": [(0, 15, 1.0), (15, 30, 0.0)],
}


@pytest.mark.parametrize("end", [".bedgraph", ".bg", ".bedGraph.gz"])
def test_bedgraph(tmp_path, end):
    write(tmp_path / f"x{end}")
    texts = {}
    for strand in ("plus", "minus"):
        data = (tmp_path / f"x.{strand}{end}").read_bytes()
        texts[strand] = (gzip.decompress(data) if end.endswith("gz") else data).decode().splitlines()
    expected = [f"{c}\t{s}\t{e}\t{v:g}" for c, steps in PLUS.items() for s, e, v in steps]
    for strand, lines in (("plus", expected), ("minus", ["chr1\t3\t4\t1e-07"])):
        sign = {"plus": "+", "minus": "-"}[strand]
        track = [] if end.endswith("gz") else [f'track type=bedGraph name="tiny ({sign})"']  # not for tabix
        assert texts[strand] == ["# seqray x", *track, *lines]


def test_a_contig_that_would_be_a_comment_is_refused(tmp_path):
    with TrackWriter(tmp_path / "x.bg") as track:
        track.begin("#1", 100)
        with pytest.raises(InputError, match="'#1' would make comments"):
            track.add("#1", "+", 0, [0.5])


@pytest.mark.parametrize("end", [".bw", ".bigWig"])
def test_bigwig(tmp_path, end):
    write(tmp_path / f"x{end}")
    with pyBigWig.open(str(tmp_path / f"x.plus{end}")) as track:
        assert track.chroms() == {"chr1": 100, "chr2": 30, "chr3": 30}
        assert track.intervals("chr2") is None
        for contig, steps in PLUS.items():
            assert [(s, e, pytest.approx(v)) for s, e, v in track.intervals(contig)] == steps
    with pyBigWig.open(str(tmp_path / f"x.minus{end}")) as track:
        assert track.intervals("chr1") == ((3, 4, pytest.approx(1e-7)),)
    assert len(list(tmp_path.iterdir())) == 2


def test_many_steps_cross_the_blocks_of_a_bigwig(tmp_path, monkeypatch):
    monkeypatch.setattr("seqray.io.scores.BLOCK", 7)
    values = np.random.default_rng(1).random(50).astype(np.float32)
    with TrackWriter(tmp_path / "x.bw") as track:
        for contig in "ab":
            track.begin(contig, 150)
            track.add(contig, "-", 0, values, span=3)
    with pyBigWig.open(str(tmp_path / "x.minus.bw")) as track:
        for contig in "ab":
            assert np.array_equal(track.values(contig, 0, 150), np.repeat(values, 3))


def test_nothing_scored_gives_valid_empty_tracks(tmp_path):
    for end in (".bw", ".bg"):
        with TrackWriter(tmp_path / f"none{end}"):
            pass
        with TrackWriter(tmp_path / f"bare{end}") as track:
            track.begin("chr1", 100)
    assert (tmp_path / "none.plus.bg").read_text() == 'track type=bedGraph name="seqray (+)"\n'
    with pyBigWig.open(str(tmp_path / "bare.minus.bw")) as track:
        assert (track.chroms(), track.intervals("chr1")) == ({"chr1": 100}, None)
    with pyBigWig.open(str(tmp_path / "none.minus.bw")) as track:
        assert track.chroms() == {"none": 1}


def test_a_strand_without_values_has_an_index_of_no_items(tmp_path):
    with TrackWriter(tmp_path / "x.bw") as track:
        track.begin("chr1", 100)
    content = (tmp_path / "x.minus.bw").read_bytes()
    _, _, _, _, data, index = struct.unpack_from("<IHHQQQ", content)
    assert struct.unpack_from("<Q", content, data) == (0,)  # blocks
    magic, _, items = struct.unpack_from("<IIQ", content, index)
    assert (magic, items) == (0x2468ACE0, 0)  # of an R-tree
    assert struct.unpack_from("<BBH", content, index + 48) == (1, 0, 0)  # a leaf without children
    assert content[-4:] == content[:4]  # the magic number that ends a bigWig


def test_compressed_tracks_can_be_indexed(tmp_path):
    write(tmp_path / "x.bedgraph.gz")
    for strand, contigs in (("plus", ["chr1", "chr3"]), ("minus", ["chr1"])):
        path = tmp_path / f"x.{strand}.bedgraph.gz"
        pysam.tabix_index(str(path), preset="bed")
        with pysam.TabixFile(str(path)) as indexed:
            assert indexed.contigs == contigs


def test_one_file_per_strand():
    paths = track_paths("a.b/x.y.bedGraph.gz")
    assert {strand: str(path) for strand, path in paths.items()} == {
        "+": "a.b/x.y.plus.bedGraph.gz",
        "-": "a.b/x.y.minus.bedGraph.gz",
    }


@pytest.mark.parametrize("name", ["x.wig", ".bw", "bw", "-"])
def test_another_name_is_refused(name):
    with pytest.raises(InputError, match=r"use \.bedgraph, \.bedgraph\.gz or \.bw"):
        track_paths(name)
