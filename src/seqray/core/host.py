"""A guest in the caller's process: what seqray computes with, whatever the program around it has set."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class OwnSettings:
    """Compute in float32 at full precision, with gradients, on the CPU where no device is named.

    A program may have set other defaults of PyTorch: a default type of float64, fast products of matrices,
    autocast, ``no_grad``, ``inference_mode``, a default device. What holds for a thread is set for this
    thread; what holds for the process is set by the first of all threads that compute, and set back by the
    last. PyTorch that is not loaded yet has no other settings.
    """

    _lock, _inside = threading.Lock(), 0
    _before: tuple[Any, str] | None = None

    def __enter__(self) -> Self:
        self._settings = ExitStack()
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return self
        cls = OwnSettings
        with cls._lock:
            if not cls._inside:
                cls._before = torch.get_default_dtype(), torch.get_float32_matmul_precision()
                torch.set_default_dtype(torch.float32)
                torch.set_float32_matmul_precision("highest")
            cls._inside += 1
        self._settings.callback(self._leave, torch)
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                self._settings.enter_context(torch.autocast(kind, enabled=False))
        self._settings.enter_context(torch.inference_mode(False))
        self._settings.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":
            self._settings.enter_context(torch.device("cpu"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._settings.__exit__(kind, error, trace)

    @staticmethod
    def _leave(torch: Any) -> None:
        cls = OwnSettings
        with cls._lock:
            cls._inside -= 1
            if not cls._inside and cls._before is not None:
                dtype, precision = cls._before
                torch.set_default_dtype(dtype)
                torch.set_float32_matmul_precision(precision)


def as_guest(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function compute with `OwnSettings`, and where it gives an iterator, each of its steps."""

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        with OwnSettings():
            result = function(*args, **named)
        return cast(T, _step_by_step(result)) if isinstance(result, Iterator) else result

    return call


def _step_by_step(items: Iterator[T]) -> Iterator[T]:
    while True:
        with OwnSettings():
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
