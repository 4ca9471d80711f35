"""MMseqs2 as a tool: a program of its name that does what its manual says, and programs that don't."""

import sys

import pytest

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.errors import InputError
from seqray.homology.relatives import mmseqs_groups

# Clusters sequences that begin with the same eight letters, on the strand given; notes its arguments.
FAKE = """#!{python}
import pathlib, sys
pathlib.Path("{log}").write_text("\\n".join(sys.argv[1:]))
assert sys.argv[1] == "easy-cluster"
source, out = sys.argv[2:4]
lines = pathlib.Path(source).read_text().split()
first, rows = dict(), []
for name, letters in zip(lines[::2], lines[1::2]):
    rows.append((first.setdefault(letters[:8], name[1:]), name[1:]))
pathlib.Path(out + "_cluster.tsv").write_text("".join(f"{{a}}\\t{{b}}\\n" for a, b in rows))
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a program ``mmseqs`` on the path, alone."""

    def write(source):
        program = tmp_path / "bin" / "mmseqs"
        program.parent.mkdir(exist_ok=True)
        program.write_text(source)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))
        return tmp_path / "log"

    return write


@pytest.fixture
def fake(install, tmp_path):
    return install(FAKE.format(python=sys.executable, log=tmp_path / "log"))


def test_clusters_become_groups_whatever_the_strand(fake):
    one, two = "ACGGTTCAGACCA", "TTGACCATGGATC"
    sequences = [one, two, reverse_complement(one, DNA), one[:8] + "TTTTT"]
    assert mmseqs_groups(sequences, 0.75).tolist() == [0, 1, 0, 0]
    assert mmseqs_groups(sequences, 0.75, both_strands=False).tolist() == [0, 1, 2, 0]
    words = fake.read_text().split()
    assert words[words.index("--min-seq-id") + 1] == "0.75"
    assert words[words.index("--dbtype") + 1] == "2"
    assert words[words.index("--cluster-mode") + 1] == "1"  # connected components


def test_a_missing_program_is_named_with_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no program 'mmseqs' on the path; install MMseqs2"):
        mmseqs_groups(["ACGT"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('Input is broken')", r"failed with status 1 \(Input is broken\)"),
        ("pass", r"failed with status 0 \(no message\)"),
        ("open('out_cluster.tsv', 'w').write('0+\\t0+\\n')", "mmseqs left out 3 of 4 sequences"),
    ],
)
def test_a_run_that_fails_is_told(install, body, message):
    install(f"#!{sys.executable}\nimport sys\n{body}\n")
    with pytest.raises(InputError, match=message):
        mmseqs_groups(["ACGT", "TTTT"])
