"""Threads: how many by default, and how they wait."""

import os
import resource
import subprocess
import sys
import threading

import pytest
import torch

from seqray.cli import model as processors
from seqray.cli.model import (
    SLEEP,
    check_address_space,
    count_threads,
    free_processors,
    has_gpu_device,
    prepare_process,
    use_threads,
)
from seqray.core.errors import ConfigError, InputError

SPIN = (*SLEEP, "GOMP_SPINCOUNT")


@pytest.fixture(autouse=True)
def eight_processors(monkeypatch):
    for name in (*SPIN, "OMP_NUM_THREADS", "MKL_NUM_THREADS", "SLURM_CPUS_PER_TASK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.fixture
def machine(tmp_path):
    """Files of /proc and /sys: ``machine(cgroup, path=content)``."""

    def write(cgroup, files):
        for path, content in {"proc/self/cgroup": cgroup, **files}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("", {}, 8),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3),
        ("0::/job\n", {"sys/fs/cgroup/job/cpu.max": "250000 100000\n"}, 2),
        ("0::/hidden\n", {"sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4),
        (
            "7:memory:/\n4:cpu,cpuacct:/job\n",
            {
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            "4:cpu:/\n",
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
            8,
        ),
    ],
)
def test_the_quota_of_the_cgroup_limits_the_processors(machine, cgroup, files, expected):
    assert free_processors(machine(cgroup, files)) == expected


def test_the_affinity_and_the_share_of_a_task_limit_the_processors(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    root = machine("0::/\n", {"sys/fs/cgroup/cpu.max": "600000 100000\n"})
    assert free_processors(root) == 2
    for share, expected in {
        "1": 1,
        "4": 2,
        "": 2,
        "many": 2,
    }.items():  # of Slurm, which may not confine tasks
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", share)
        assert free_processors(root) == expected


@pytest.fixture
def torch_threads(monkeypatch):
    """Numbers of threads that torch was given; it begins with six."""
    numbers = [6]
    monkeypatch.setattr(torch, "set_num_threads", numbers.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: numbers[-1])
    return numbers


@pytest.mark.parametrize(
    ("asked", "free", "environment", "expected"),
    [(None, 4, {}, 4), (3, 2, {}, 3), (None, 2, {"OMP_NUM_THREADS": "6"}, 6)],
)
def test_threads_are_those_asked_for_or_the_free_processors(
    torch_threads, monkeypatch, asked, free, environment, expected
):
    monkeypatch.setattr(processors, "free_processors", lambda: free)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert use_threads(asked) == expected
    assert torch_threads[-1] == expected


@pytest.mark.parametrize(
    ("asked", "environment", "expected"),
    [
        (None, {}, 4),
        (3, {"OMP_NUM_THREADS": "6"}, 3),
        (None, {"OMP_NUM_THREADS": "6"}, 6),
        (None, {"OMP_NUM_THREADS": "5,2"}, 5),
        (None, {"OMP_NUM_THREADS": "0", "MKL_NUM_THREADS": "7"}, 7),
    ],
)
def test_threads_are_counted_without_torch(monkeypatch, asked, environment, expected):
    monkeypatch.setattr(processors, "free_processors", lambda: 4)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert count_threads(asked) == expected


@pytest.mark.parametrize(("names", "expected"), [((), False), (("nvidia0",), True), (("kfd",), True)])
def test_a_gpu_is_seen_by_its_device_file(tmp_path, names, expected):
    (tmp_path / "dev").mkdir()
    for name in ("null", *names):
        (tmp_path / "dev" / name).touch()
    assert has_gpu_device(tmp_path) is expected


def test_threads_that_cant_be_started_are_refused_before_openmp_ends_the_process(torch_threads, monkeypatch):
    start, started = threading.Thread.start, []

    def start_five(thread):
        if len(started) == 5:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_five)
    assert use_threads(6) == 6  # one of them is there
    started.clear()
    with pytest.raises(ConfigError, match="can't start 7 threads; give a smaller --threads"):
        use_threads(7)
    assert torch_threads[1:] == [6]
    assert not any(thread.is_alive() for thread in started)


@pytest.mark.parametrize(
    ("limit", "refused"), [(-1, False), (600_000_000, False), (500_000_000, True), (0, True)]
)
def test_a_limit_under_which_torch_would_abort_is_refused(monkeypatch, limit, refused):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, -1))
    if not refused:
        check_address_space("predict")
        return
    with pytest.raises(
        InputError, match=rf"limited to {limit // 10**6} MB \(ulimit -v\); allow 600 MB or more"
    ):
        check_address_space("predict")


def test_the_runtime_of_torch_reads_that_its_threads_shall_sleep():
    program = (
        "from seqray.cli.main import main\n"
        "main(['completion', 'bash'])\n"  # as every verb
        "import torch\ntorch.ones(9, 9) @ torch.ones(9, 9)"
    )
    settings = os.environ | {"OMP_DISPLAY_ENV": "true"}
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True)
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr.replace('"', "'"), done.stderr


@pytest.mark.parametrize("name", SPIN)
def test_what_the_user_has_set_stays(monkeypatch, name):
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv(name, "1")
    prepare_process()
    assert {other for other in SPIN if other in os.environ} == {name}


def test_nothing_is_set_once_torch_is_loaded():
    prepare_process()
    assert not any(name in os.environ for name in SPIN)


def test_onednn_keeps_the_kernels_of_many_shapes_unless_the_user_says_how_many(monkeypatch):
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.delenv(name, raising=False)
    prepare_process()
    assert int(os.environ[name]) > 1024  # its default
    monkeypatch.setenv(name, "7")
    prepare_process()
    assert os.environ[name] == "7"
