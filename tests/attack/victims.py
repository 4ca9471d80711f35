"""Verbs with all their outputs, run again and again in a folder, under attack."""

import shutil
from pathlib import Path

from forking import Ended, Forks

# Outputs are named out/*; what is read lies beside the folder.
WRITING = {
    "predict": "../promoter.fa --model ../tiny.safetensors --out out/a.tsv --skipped out/b.tsv",
    "scan": "../genome.fa --model ../tiny.safetensors --null-mb 0 --out out/a.tsv --out out/b.gff3 "
    "--out out/c.gb --track out/d.bw --track out/e.bedgraph.gz --html out/f.html --skipped out/g.tsv",
    "gather": "../one.shard ../two.shard --out out/a.bed --out out/b.tsv.gz --track out/c.bw "
    "--html out/d.html",
    "compare": "../calls.tsv ../calls.tsv --genome-a ../genome.fa --genome-b ../genome.fa --out out/a.tsv",
    "summary": "a=../evaluation.tsv b=../evaluation.tsv --out out/a.tsv --html out/b.html",
    "explain": "../promoter.fa --model ../tiny.safetensors --check-records 3 --out out/a.tsv "
    "--html out/b.html --track out/c.bw --heads out/d.tsv --motifs out/e.meme",
    "negatives": "../promoter.fa --recipe shuffle --recipe genome --genome ../genome.fa "
    "--starts ../starts.bed --distance 20 --out out/a.tsv.gz --skipped out/b.tsv",
    "audit": "../table.tsv --no-baselines --out out/a.tsv --html out/b.html",
    "split": "../table.tsv --shares 60,20,20 --out out/a.tsv --proof out/b.tsv",
    "evaluate": "--test ../table.tsv --model ../tiny.safetensors --no-floor --bootstrap 20 --out out/a.tsv "
    "--json out/b.json --html out/c.html --multiqc out/d_mqc.json",
    "calibrate": "../tiny.safetensors --test ../table.tsv --out out/a.safetensors",
    "prefilter": "../tiny.safetensors ../contig.fa --windows 3000 --out out/a.safetensors",
    "export": "../tiny.safetensors --out out/a.onnx",
    "pretrain": "../genome.fa --config ../config.yaml --threads 1 --work-dir work --out out/a.safetensors",
    "train": "--train ../table.tsv --config ../config.yaml --threads 1 --work-dir work "
    "--out out/a.safetensors --save-config out/b.yaml",
}


class Victim:
    """A verb that is run again and again in an empty folder, whose parent holds the inputs, and killed."""

    def __init__(self, forks: Forks, verb: str, folder: Path, *, quiet: bool = True) -> None:
        self._forks, self._folder = forks, folder
        self._words = [verb, *WRITING[verb].split(), *["--quiet"] * quiet]
        self.clear()
        done = self.run()
        assert done.status == 0, done
        self.seconds, self.whole = done.seconds, self.outputs()

    def clear(self) -> None:
        """Begin anew."""
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "out").mkdir(parents=True)

    def put(self, files: dict[str, bytes]) -> None:
        """Let outputs of an earlier run be there."""
        for name, data in files.items():
            (self._folder / "out" / name).write_bytes(data)

    def run(self, **how: object) -> Ended:
        """Run it; see `Forks.run`."""
        return self._forks.run(self._words, self._folder, **how)

    def outputs(self) -> dict[str, bytes]:
        """Outputs; hidden folders are none."""
        return {path.name: path.read_bytes() for path in (self._folder / "out").iterdir() if path.is_file()}

    def litter(self) -> list[str]:
        """Whatever else lies there."""
        return [path.name for path in (self._folder / "out").iterdir() if not path.is_file()]
