"""The table of ``benchmarks/memory.py``: what its figures depend on stands above them, once."""

from __future__ import annotations

import memory


def test_a_new_table_begins_with_what_its_figures_depend_on(tmp_path, monkeypatch):
    path = tmp_path / "memory.tsv"
    monkeypatch.setattr("sys.argv", ["benchmarks/memory.py", "predict", "records"])
    memory.add_row(path, "1\t2\t3\t4\t5")
    memory.add_row(path, "6\t7\t8\t9\t10")
    lines = path.read_text().splitlines()
    assert lines[0] == "# command: python benchmarks/memory.py predict records"
    assert [line.partition(":")[0] for line in lines[1:3]] == ["# versions", "# machine"]
    assert lines[3:] == ["\t".join(memory.COLUMNS), "1\t2\t3\t4\t5", "6\t7\t8\t9\t10"]
