"""The scan workflow on a one-node Slurm of our own, with a job killed in mid-run; a training in two tasks.

    python tests/slurm/run.py --folder /some/empty/folder

Starts munge, slurmctld and slurmd, runs ``workflows/scan`` through them with at least ten jobs, cancels one
that runs, and runs the workflow again; the results must be byte-identical to those of a run without Slurm.
Needs root and the packages slurm-wlm and munge (``make test-slurm`` installs them). Every step has a time
limit, and the daemons are ended by their process ids.
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SNAKEFILE = ROOT / "workflows" / "scan" / "workflow" / "Snakefile"
PROFILE = ROOT / "workflows" / "profiles" / "slurm"
SHARDS = 6
LETTERS = 20_000
CONF = """\
ClusterName=seqray
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/log/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=60
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=60 State=UP
"""


def command(*words: str, limit: int = 60) -> str:
    """Run a program to its end and return what it printed; nothing where it failed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False)
    return done.stdout if done.returncode == 0 else ""


def wait_for(what: str, test: Callable[[], object], limit: float) -> None:
    """Wait until a test holds."""
    end = time.monotonic() + limit
    while not test():
        if time.monotonic() > end:
            raise TimeoutError(f"no {what} within {limit:.0f} s")
        time.sleep(0.5)


@contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """A one-node Slurm for the length of the block."""
    for name in ("log", "run", "state", "spool"):
        (folder / name).mkdir(parents=True)
    # Named by SLURM_CONF alone, the file isn't found by the jobs.
    conf = Path("/etc/slurm/slurm.conf")
    conf.parent.mkdir(exist_ok=True)
    conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], folder=folder))
    command("install", "-d", "-o", "munge", "-g", "munge", "-m", "755", "/run/munge")
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        munged = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "/usr/sbin/munged"]
        with open(folder / "log" / "out.txt", "wb") as log:
            start = [*munged, "--foreground", "--force"]
            daemons.append(subprocess.Popen(start, stdout=log, stderr=log))
            wait_for("munge socket", Path("/run/munge/munge.socket.2").exists, 20)
            daemons.append(subprocess.Popen(["slurmctld", "-D"], stdout=log, stderr=log))
            wait_for("slurmctld", lambda: "UP" in command("scontrol", "ping"), 30)
            daemons.append(subprocess.Popen(["slurmd", "-D"], stdout=log, stderr=log))
        wait_for("idle node", lambda: "idle" in command("sinfo", "--noheader", "--format=%T"), 60)
        print(command("sinfo"), flush=True)
        yield
    finally:
        subprocess.run(["scancel", "--user", "root"], timeout=30, check=False)
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()


def make_project(folder: Path) -> Path:
    """Two made genomes and the settings of the workflow."""
    (folder / "config").mkdir(parents=True)
    rows = ["sample\tfasta\tcircular"]
    for seed, sample in enumerate(("alpha", "beta")):
        sequence = "".join(random.Random(seed).choices("ACGT", k=LETTERS))
        (folder / f"{sample}.fa").write_text(f">{sample}\n{sequence}\n")
        rows.append(f"{sample}\t{sample}.fa\tno")
    (folder / "config" / "samples.tsv").write_text("\n".join(rows) + "\n")
    settings = {
        "samples": "config/samples.tsv",
        "models": ["ecoli-promoter"],
        "scan": {"shards": SHARDS, "stride": 20, "track": "bedgraph"},
        "explain": {"calls": 0},
        "resources": {"threads": 1, "mem_mb": 1500, "runtime": 20},
    }
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(settings))
    return folder


def snakemake(project: Path, *more: str) -> subprocess.Popen[str]:
    """Start the workflow in a project."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--directory", str(project)]
    return subprocess.Popen(
        [*words, *more],
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str], name: str, limit: int) -> int:
    """Wait for a run and show the end of what it said."""
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise
    kept = [line for line in text.splitlines() if "steps (" in line or "rror" in line or "Submitted" in line]
    print(f"--- {name}: exit {process.returncode}", *kept[-30:], sep="\n", flush=True)
    return process.returncode


def results(project: Path) -> dict[str, str]:
    """Checksum of each result, but for logs and benchmarks."""
    found = {}
    for path in sorted((project / "results").rglob("*")):
        name = path.relative_to(project / "results")
        if path.is_file() and name.parts[0] not in ("logs", "benchmarks", "shards"):
            found[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def kill_one(project: Path, limit: int) -> str:
    """Cancel the first scan job that Slurm runs, once another has finished its shard."""

    def running() -> list[str]:
        lines = command("squeue", "--noheader", "--states=R", "--format=%i %k").splitlines()
        return [line.split()[0] for line in lines if "scan" in line.partition(" ")[2]]

    shards = project / "results" / "shards"
    wait_for("finished shard", lambda: any(shards.rglob("*.shard")), limit)
    wait_for("running scan job", running, limit)
    job = running()[0]
    time.sleep(1)
    command("scancel", job)
    return job


def train_in_two_tasks(folder: Path) -> bool:
    """Train a tiny model by two tasks of one job, as Lightning finds its place from Slurm's variables."""
    example = ROOT / "workflows" / "train" / ".test"
    model = folder / "two.safetensors"
    seqray = [sys.executable, "-m", "seqray"]
    words = [*seqray, "train", "--config", str(example / "config" / "tiny.yaml"), "--threads", "1"]
    words += ["--train", str(example / "data" / "labelled.tsv"), "--out", str(model)]
    words += ["--set", "trainer.num_nodes=1", "--set", "trainer.devices=2", "--set", "trainer.strategy=ddp"]
    step = [
        "srun",
        "--nodes=1",
        "--ntasks-per-node=2",
        "--mem=3000",
        "--time=20",
        "--job-name=seqray-train",
        "--kill-on-bad-exit=1",
    ]
    done = subprocess.run([*step, *words], capture_output=True, text=True, timeout=1200, check=False)
    print(f"--- training in two tasks: exit {done.returncode}", done.stderr[-2000:], sep="\n", flush=True)
    return done.returncode == 0 and "\tok\t" in command(*seqray, "models", "verify", str(model), limit=300)


def scan_with_a_killed_job(folder: Path, limit: int) -> dict[str, bool]:
    """Run, kill, rerun, compare: what should hold, and whether it does."""
    cluster = make_project(folder / "cluster")
    # The copy of the profile waits less than a real cluster needs.
    through = ("--profile", str(PROFILE), "--jobs", "4", "--seconds-between-status-checks", "5")
    through += ("--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "10")
    first = snakemake(cluster, *through)
    try:
        job = kill_one(cluster, limit)
    except TimeoutError:
        first.terminate()
        raise
    print(f"cancelled job {job} in mid-run", flush=True)
    killed = finish(first, "run with a killed job", limit)
    half = results(cluster)
    again = finish(snakemake(cluster, *through), "rerun", limit)
    nothing = snakemake(cluster, *through)
    idle = "Nothing to be done" in nothing.communicate(timeout=300)[0]
    jobs = (folder / "slurm" / "log" / "jobcomp.txt").read_text().splitlines()
    states = re.findall(r"JobState=(\w+)", "\n".join(jobs))
    plain = make_project(folder / "plain")
    without = finish(snakemake(plain, "--cores", "2"), "run without Slurm", limit)
    print(f"jobs in Slurm: {len(jobs)}: " + ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states))))
    return {
        "the first run failed": killed != 0,
        "its results are not all there": len(half) < len(results(cluster)),
        "the rerun finished": again == 0,
        "a third run had nothing to do": idle,
        "the run without Slurm finished": without == 0,
        "ten jobs or more went through Slurm": len(jobs) >= 10,
        "one of them was cancelled": "CANCELLED" in states,
        "the results are byte-identical": results(cluster) == results(plain) != {},
    }


def main() -> int:
    """Exit status 0 where all is as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="empty or missing; is made")
    parser.add_argument("--limit", type=int, default=1200, help="seconds for each run (default: 1200)")
    parser.add_argument("--only", choices=("scan", "train"), help="one of the two tests")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a time limit from outside ends the daemons, too
    shutil.rmtree(args.folder, ignore_errors=True)
    checks: dict[str, bool] = {}
    with slurm(args.folder / "slurm"):
        if args.only != "train":
            checks |= scan_with_a_killed_job(args.folder, args.limit)
        if args.only != "scan":
            checks["two tasks trained one model"] = train_in_two_tasks(args.folder)
    for what, holds in checks.items():
        print(f"{'ok    ' if holds else 'FAILED'} {what}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
