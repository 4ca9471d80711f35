"""Targets: YAML of a training run, regions, and figures in JSON."""

import json
from pathlib import Path

import yaml

from fuzz.target import Target
from seqray.core.errors import InputError
from seqray.core.records import RegionSet, parse_region
from seqray.core.run_config import RunConfig, load_run_config
from seqray.core.serialization import check_plain
from seqray.training.plan import read_metrics, write_config

CONFIGS = Path(__file__).parents[2] / "configs"


def read_config(path: Path) -> None:
    """Read settings, and write them again as they were."""
    config = load_run_config(path)
    check_plain(config, "settings")
    written = path.with_suffix(".written.yaml")
    write_config(str(written), config)
    if config.model.kind == "locator" and load_run_config(written) != config:
        raise RuntimeError("settings differ after they were written and read")


def read_regions(path: Path) -> None:
    """One region a line, of contigs of 100 letters."""
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    regions = []
    for line in lines:
        try:
            regions.append(parse_region(line))
        except InputError:
            continue
    chosen = RegionSet(regions)
    for name in ("one", "two:1-5", *(region.contig for region in regions[:3])):
        try:
            parts = chosen.parts_of(name, 100)
        except InputError:
            continue
        if parts is not None and any(not 0 <= start < end <= 100 for start, end in parts.pairs()):
            raise RuntimeError("a part outside the contig")
    chosen.check()


def read_figures(path: Path) -> None:
    """Figures for a card."""
    json.dumps(read_metrics(str(path)), allow_nan=False)


def config_texts() -> list[bytes]:
    return [path.read_bytes() for path in sorted(CONFIGS.glob("*.yaml")) if path.stat().st_size < 3000]


def config_values() -> list[bytes]:
    """The same settings as JSON, which is YAML too."""
    return [json.dumps(yaml.safe_load(text)).encode() for text in config_texts()]


def _names(settings: type) -> tuple[bytes, ...]:
    return tuple(f"{name}: ".encode() for name in settings.__dataclass_fields__)


METRICS = b'{"headline": {"metric": "mcc", "value": 0.8, "low": 0.7, "high": 0.9}, "test": {"auroc": 1e-3}}'
WORDS = (
    b"!!int ", b"!!python/object:os.system ", b"&a ", b"*a", b"? ", b"- ", b"|\n", b">-\n", b"<<: ",
    b"2001-99-99", b"!!timestamp ", b"!!binary ", b"!!set ", b"!!omap ", b".nan", b"1e999", b"{", b"}", b"[",
    b"---\n", b"%YAML 9.9\n",
)  # fmt: skip
TARGETS = (
    Target("yaml", read_config, config_texts, suffix=".yaml", tokens=(*WORDS, *_names(RunConfig))),
    Target("config", read_config, config_values, suffix=".yaml", is_json=True),
    Target(
        "regions",
        read_regions,
        lambda: [b"one:1-20\none:50\ntwo:1-5\none:1,0-9,9\none:90-101\nthree", b"one:0-5\none:5-1\n:1-2\n"],
        tokens=(b"one:", b"-", b",", b"999999999999999999", b"1-", b"\xd9\xa3"),
    ),
    Target("metrics", read_figures, lambda: [METRICS], suffix=".json", is_json=True),
)
