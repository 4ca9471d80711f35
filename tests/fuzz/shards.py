"""Target: shards of a scan, as bytes."""

import tempfile
from functools import cache
from pathlib import Path

from fuzz.models import TARGETS as MODELS
from fuzz.target import Target, write_beside
from seqray.cli.main import main
from seqray.scanning.options import ScanCallbacks
from seqray.scanning.shards import ShardFile, check_shards, gather_shards
from tables import fasta, gff3, letters, write


@cache
def _scanned() -> tuple[bytes, bytes]:
    """The two shards of a scan with genes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(place / "x.fa", fasta({"one": letters(300, 1), "two": letters(300, 2)}))
        write(place / "x.gff3", gff3([("one", 40, 120, "+")]))
        write(place / "x.safetensors", MODELS[1].build(MODELS[1].seeds()[1]))
        words = f"scan {folder}/x.fa --model {folder}/x.safetensors --genes {folder}/x.gff3 --threshold 0.3"
        words += f" --null-mb 0.001 --region one:20-290 --region two --quiet --out {folder}/x.shard --shard"
        made = []
        for number in (1, 2):
            if main([*words.split(), f"{number}/2"]):
                raise RuntimeError("the scan of a seed failed")
            made.append((place / "x.shard").read_bytes())
        return made[0], made[1]


def gather(path: Path) -> None:
    """Read a shard, and join it with the other one."""
    other = write_beside(path.with_name("other.shard"), _scanned()[1])
    with ShardFile(path) as one, ShardFile(other) as two:
        check_shards([one, two])
        callbacks = ScanCallbacks(on_profile=str, on_contig=lambda name, length: None)
        for call in gather_shards([one, two], callbacks).calls:
            str(call)


TARGETS = (Target("shard-bytes", gather, lambda: [_scanned()[0]], suffix=".shard"),)
