"""What can't be done is one line that names what is wrong; exit 2, and nothing is left behind."""

import pytest

from cli.errors import FILES, rows
from tables import write


@pytest.fixture(scope="module")
def files(input_files, tmp_path_factory):
    """A folder of every kind of input, sound and bad."""
    folder = tmp_path_factory.mktemp("errors")
    for name, content in (input_files | FILES).items():
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name, content)
    return folder


def state(folder):
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.mark.parametrize(("command", "names"), [pytest.param(*row, id=row[0]) for row in rows()])
def test_an_error_is_one_line_that_names_what_is_wrong(run, files, monkeypatch, command, names):
    monkeypatch.chdir(files)
    before = state(files)
    run.refused(command, names=names)
    assert state(files) == before
