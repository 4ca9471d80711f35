"""A guest in the caller's process: what seqray computes with, whatever the program around it has set."""

from __future__ import annotations

import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from seqray.core.errors import python_number

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def own_settings(*, types: bool = True) -> Iterator[None]:
    """Compute in float32 at full precision, with gradients, on the CPU where no device is named.

    Without ``types`` the default type and device stay those of the program, as its networks may need them.
    """
    with ExitStack() as settings:
        if numpy := sys.modules.get("numpy"):
            settings.enter_context(numpy.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            settings.enter_context(_process.entered(torch, types))
            for kind in ("cpu", "cuda"):
                if torch.is_autocast_enabled(kind):
                    settings.enter_context(torch.autocast(kind, enabled=False))
            settings.enter_context(torch.inference_mode(False))
            settings.enter_context(torch.enable_grad())
            if types and torch.get_default_device().type != "cpu":
                settings.enter_context(torch.device("cpu"))
        yield


class _Process:
    """Settings of the whole process: the first thread that computes sets them, the last sets them back."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._before: tuple[Any, str, list[str]] = None, "", []

    @contextmanager
    def entered(self, torch: Any, types: bool) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._before = torch.get_default_dtype(), *self._products(torch)
                torch.set_float32_matmul_precision("highest")
            if types:
                torch.set_default_dtype(torch.float32)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:  # set all back
                    dtype, products, by_backend = self._before
                    torch.set_default_dtype(dtype)
                    if products:
                        torch.set_float32_matmul_precision(products)
                    for place, value in zip(self._backends(torch), by_backend, strict=True):
                        place.fp32_precision = value

    def _products(self, torch: Any) -> tuple[str, list[str]]:
        by_backend = [place.fp32_precision for place in self._backends(torch)]
        try:
            return torch.get_float32_matmul_precision(), by_backend
        except RuntimeError:
            return "", by_backend

    def _backends(self, torch: Any) -> list[Any]:
        places = torch.backends.mkldnn, torch.backends.cuda
        return [place.matmul for place in places if hasattr(getattr(place, "matmul", None), "fp32_precision")]


_process = _Process()
# In a fork the other threads are gone: they hold no lock, and compute nothing.
os.register_at_fork(after_in_child=_process.__init__)


class OneAtATime:
    """A lock of what only one thread of the process may do, which a fork opens."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def entered(self) -> Iterator[None]:
        with self._lock:
            yield


_warnings = OneAtATime()


@contextmanager
def own_warnings(*ignored: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore some warnings; one thread at a time, for filters are those of the process."""
    with _warnings.entered(), warnings.catch_warnings():
        for category in ignored:
            warnings.filterwarnings("ignore", message, category)
        yield


class _Threads:
    """Lets threads compute with one thread of torch each, and gives back to each what it had.

    A thread that begins meanwhile begins with one, and would keep it: it gets what the others had.
    """

    def __init__(self) -> None:
        self._lock, self._before = threading.Lock(), dict[int, int]()

    @contextmanager
    def one(self) -> Iterator[None]:
        torch: Any = sys.modules["torch"]
        me = threading.get_ident()
        with self._lock:
            is_outer, own = me not in self._before, torch.get_num_threads()
            if is_outer:
                self._before[me] = own if own > 1 else max(self._before.values(), default=1)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            if is_outer:
                with self._lock:
                    torch.set_num_threads(self._before.pop(me))


_threads = _Threads()
os.register_at_fork(after_in_child=_threads.__init__)
one_thread = _threads.one


def as_guest(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function, or each step of its iterator, compute with `own_settings` and numbers of Python."""

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        with own_settings():
            result = function(*args, **{name: python_number(value) for name, value in named.items()})
        return cast(T, _step_by_step(result)) if isinstance(result, Iterator) else result

    return call


def _step_by_step(items: Iterator[T]) -> Iterator[T]:
    while True:
        with own_settings():
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
