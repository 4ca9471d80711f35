"""Hidden folders beside outputs, in which files wait until they are complete.

The name of a folder follows from the name of its output, and a lock shows whether its run is alive. So what a
killed run left behind is found, emptied and used by the next run that writes the same file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path

from seqray.core import signals_held

_LOCK = ".lock"


@contextmanager
def hidden_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target``, which is removed at the end with all that is left in it.

    Signals wait while it is made and while it is removed, so that none leaves it behind.
    """
    stem = f".seqray-{blake2b(os.fsencode(target.name), digest_size=6).hexdigest()}"
    taken = None
    try:
        with signals_held():
            taken = next(filter(None, (_take(target.with_name(f"{stem}-{number}")) for number in count())))
        yield taken[0]
    finally:
        if taken is not None:
            with signals_held():
                _remove(*taken)


def _remove(folder: Path, lock: int | None) -> None:
    with suppress(OSError):  # as where no more files can be opened; then it may hold the lock alone
        _empty(folder)
    with suppress(OSError):  # another run may have taken the folder by now
        (folder / _LOCK).unlink(missing_ok=True)
        folder.rmdir()
    if lock is not None:
        os.close(lock)


def _take(folder: Path) -> tuple[Path, int | None] | None:
    """The folder, emptied, and its lock; None if it is that of a living run, or not ours."""
    while True:
        if not _make(folder):
            return None
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # its run ended just now
            continue
        except OSError:
            with suppress(OSError):  # it is empty if it was made just now
                folder.rmdir()
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:  # a file system without locks
            os.close(lock)
            return Path(tempfile.mkdtemp(prefix=".seqray-", dir=folder.parent)), None
        if _is_file(lock, folder / _LOCK):
            try:
                _empty(folder)
            except OSError:
                _remove(folder, lock)
                raise
            return folder, lock
        os.close(lock)


def _make(folder: Path) -> bool:
    """Make the folder; False if somebody else's has its name, who could have put anything there."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        with suppress(FileNotFoundError):
            known = folder.lstat()
            return stat.S_ISDIR(known.st_mode) and known.st_uid == os.geteuid()
    return True


def _is_file(handle: int, path: Path) -> bool:
    """Whether a path still is the file that is open."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    """Remove all but the lock, which goes last: who holds it may fill the folder."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != _LOCK:
            entry.unlink(missing_ok=True)
