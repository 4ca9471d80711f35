"""Shards that were damaged or forged: refused with exit status 2, or the calls of the whole scan."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from attack.damage import damages, leaves
from seqray.cli.main import main
from seqray.core.errors import InputError
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.shards import ShardFile, check_shards, gather_shards

ODD: tuple[Any, ...] = (None, True, -1, 0, 7, 1 << 62, 10**400, 0.5, 1e308, "x", "", [], [[]], {}, {"x": 1})
ORDER = ("places", "counts", "starts", "origin", "edges", "scores", "null", "letters", "profile")


@pytest.fixture(scope="module")
def shards(locator_file, tiny_model_file, tmp_path_factory) -> dict[str, list[Path]]:
    """Two shards of a scan with a model of windows, and of one with a locator and genes."""
    folder = tmp_path_factory.mktemp("shards")
    genome, genes = folder / "genome.fa", folder / "genes.gff3"
    genome.write_text("".join(f">{name}\n{letters(seed)}\n" for seed, name in enumerate(("one", "two"))))
    genes.write_text("##gff-version 3\none\tx\tCDS\t40\t120\t.\t+\t0\tID=a;gene=abcD\n")
    scans = {
        "windows": ["--model", tiny_model_file, "--null-mb", "0.001", "--region", "one:20-250"],
        "locator": ["--model", locator_file, "--genes", genes, "--threshold", "0.3"],
    }
    for name, words in scans.items():
        for number in (1, 2):
            shard = ["--shard", f"{number}/2", "--out", folder / f"{name}.{number}.shard", "--quiet"]
            assert main([str(word) for word in ["scan", genome, *words, *shard]]) == 0
    return {name: [folder / f"{name}.{number}.shard" for number in (1, 2)] for name in scans}


def letters(seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=300))


def gathered(files: list[Path]) -> tuple[Any, ...]:
    with ShardFile(files[0]) as one, ShardFile(files[1]) as two:
        check_shards([one, two])
        tracks: list[bytes] = []
        callbacks = ScanCallbacks(on_profile=lambda profile: tracks.append(profile.scores.tobytes()))
        result = gather_shards([one, two], ScanOptions(**one.header["options"]), callbacks)
    return list(result.calls), result.threshold, result.positions, result.genes, tracks


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.long)])
def test_a_damaged_shard_is_refused_or_means_the_same(shards, tmp_path, count, tally):
    first, second = shards["locator"]
    content, expected, rng = first.read_bytes(), gathered([first, second]), random.Random(1)
    refused = 0
    for kind, damaged in damages(content, rng, count):
        (tmp_path / "damaged.shard").write_bytes(damaged)
        try:
            assert gathered([tmp_path / "damaged.shard", second]) == expected
            used = True
        except InputError:
            refused, used = refused + 1, False
        tally(f"damaged shards: {kind}", used)
    assert refused > 0.96 * count  # what changes nothing is white space and the order of keys


def sign(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A shard with a checksum that holds."""
    header = {key: value for key, value in header.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(header, separators=(",", ":")).encode())
    for name in ORDER:
        digest.update(f"\n{name}\n".encode() + arrays[name].tobytes())
    return save(arrays, {"seqray_shard": json.dumps(header | {"checksum": digest.hexdigest()})})


def forgeries(shard: Path, count: int) -> Iterator[tuple[str, bytes]]:
    """Shards of which one value of the header or one number of an array is another; each is signed anew."""
    with safe_open(shard, framework="numpy") as file:
        text = file.metadata()["seqray_shard"]
        arrays = {name: file.get_tensor(name) for name in ORDER}
    rng = random.Random(2)
    for _ in range(count):
        header = json.loads(text)
        holder, key = rng.choice([(holder, key) for holder, key in leaves(header) if key != "checksum"])
        holder[key] = rng.choice(ODD)
        yield f"{key}: {holder[key]!r:.40}", sign(header, arrays)
        name = rng.choice([name for name in ORDER if len(arrays[name])])
        changed = arrays[name].copy()
        limits = np.iinfo(changed.dtype) if changed.dtype.kind in "iu" else np.finfo(changed.dtype)
        changed[rng.randrange(len(changed))] = rng.choice([limits.max, limits.min, 1])
        yield name, sign(json.loads(text), arrays | {name: changed})


@pytest.mark.filterwarnings("error::RuntimeWarning")  # which numpy prints
@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.long)])
@pytest.mark.parametrize("scan", ["windows", "locator"])
def test_a_forged_shard_is_gathered_or_refused_in_one_line(shards, tmp_path, capfd, scan, count, tally):
    forged, out = tmp_path / "forged.shard", ["--out", tmp_path / "x.tsv", "--track", tmp_path / "x.bedgraph"]
    refused = 0
    for change, content in forgeries(shards[scan][0], count):
        forged.write_bytes(content)
        status = main([str(word) for word in ["gather", forged, shards[scan][1], *out]])
        said = capfd.readouterr().err
        assert status in (0, 2), (change, said)
        assert status == 0 or said.count("\n") == 1, (change, said)
        refused += status == 2
        tally(f"forged shards: {scan}", status == 0)
    assert refused > count
