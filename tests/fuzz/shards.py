"""Targets: shards of a scan, as bytes, and as JSON that is signed anew."""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from fuzz.models import TARGETS as MODELS
from fuzz.target import Target, write_beside
from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.cli.main import main
from seqray.scanning.describe import describe_result
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.shards import _ARRAYS, ShardFile, _checksum, check_shards, gather_shards, reading_shard

KEY = "seqray_shard"


@cache
def _scanned() -> tuple[bytes, bytes]:
    """The two shards of a scan with genes."""
    with tempfile.TemporaryDirectory() as folder:
        genome, genes, model, shard = (
            Path(folder) / f"x.{end}" for end in ("fa", "gff3", "safetensors", "shard")
        )
        letters = ("".join(random.Random(seed).choices("ACGT", k=300)) for seed in (1, 2))
        genome.write_text(
            "".join(f">{name}\n{text}\n" for name, text in zip(("one", "two"), letters, strict=True))
        )
        genes.write_text("##gff-version 3\none\tx\tCDS\t40\t120\t.\t+\t0\tID=a;gene=abcD\n")
        model.write_bytes(MODELS[1].build(MODELS[1].seeds()[1]))
        words = [
            "scan",
            genome,
            "--model",
            model,
            "--genes",
            genes,
            "--threshold",
            "0.3",
            "--null-mb",
            "0.001",
        ]
        words += ["--region", "one:20-290", "--region", "two", "--quiet", "--out", shard]
        made = []
        for number in (1, 2):
            if main([str(word) for word in [*words, "--shard", f"{number}/2"]]):
                raise RuntimeError("the scan of a seed failed")
            made.append(shard.read_bytes())
        return made[0], made[1]


def split_shard(content: bytes) -> bytes:
    """An input: the header and the arrays of a shard as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.shard"
        path.write_bytes(content)
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()[KEY])
            arrays = {name: file.get_tensor(name).tolist() for name in _ARRAYS}
    return json.dumps({"header": header, "arrays": arrays}, separators=(",", ":")).encode()


def join_shard(data: bytes) -> bytes:
    """The shard of an input, with a checksum that holds."""
    kinds = {"I64": np.int64, "F64": np.float64, "U8": np.uint8, "F32": np.float32}
    try:
        parts = json.loads(data)
        header: dict[str, Any] = {k: v for k, v in parts["header"].items() if k != "checksum"}
        with np.errstate(over="ignore"):  # 1e300 becomes an infinite float32
            arrays = {
                name: np.array(parts["arrays"].get(name, []), kinds[kind]).reshape(-1)
                for name, kind in _ARRAYS.items()
            }
        checksum = _checksum(header, ((name, [arrays[name]]) for name in _ARRAYS))
        return save(arrays, {KEY: json.dumps(header | {"checksum": checksum})})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return data


def gather(path: Path) -> None:
    """Read a shard, and join it with the other one."""
    other = write_beside(path.with_name("other.shard"), _scanned()[1])
    with ShardFile(path) as one, ShardFile(other) as two:
        check_shards([one, two])
        callbacks = ScanCallbacks(on_profile=str, on_contig=lambda name, length: None)
        result = gather_shards([one, two], ScanOptions(**one.header["options"]), callbacks)
        with reading_shard(str(path)):
            expected = ExpectedPrecision.from_mapping(one.header["expected"])
            result = describe_result(result, expected, one.header["species"])
        for call in result.calls:
            str(call)


TARGETS = (
    Target("shard-bytes", gather, lambda: [_scanned()[0]], suffix=".shard"),
    Target(
        "shard-signed",
        gather,
        lambda: [split_shard(_scanned()[0])],
        build=join_shard,
        suffix=".shard",
        is_json=True,
    ),
)
