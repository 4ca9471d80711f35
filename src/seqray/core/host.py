"""A guest in the caller's process: what seqray computes with, whatever the program around it has set."""

from __future__ import annotations

import functools
import os
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
    _before: tuple[Any, str, list[str]] | None = None

    def __enter__(self) -> Self:
        self._settings = ExitStack()
        if numpy := sys.modules.get("numpy"):
            usual = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
            self._settings.enter_context(numpy.errstate(**usual))
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return self
        cls = OwnSettings
        with cls._lock:
            if not cls._inside:
                cls._before = torch.get_default_dtype(), *_products(torch)
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
                dtype, precision, by_backend = cls._before
                torch.set_default_dtype(dtype)
                if precision:
                    torch.set_float32_matmul_precision(precision)
                for place, value in zip(_backends(torch), by_backend, strict=True):
                    place.fp32_precision = value


def _backends(torch: Any) -> list[Any]:
    """Where PyTorch from 2.9 on keeps the precision of each backend."""
    places = torch.backends.mkldnn, torch.backends.cuda
    return [place.matmul for place in places if hasattr(getattr(place, "matmul", None), "fp32_precision")]


def _products(torch: Any) -> tuple[str, list[str]]:
    """Precision of matrix products: one name for all, or none if that is mixed, and that of each backend."""
    by_backend = [place.fp32_precision for place in _backends(torch)]
    try:
        return torch.get_float32_matmul_precision(), by_backend
    except RuntimeError:
        return "", by_backend


def _begin_anew() -> None:
    """In a fork, whose other threads are gone: they hold no lock, and compute nothing."""
    OwnSettings._lock, OwnSettings._inside = threading.Lock(), 0


os.register_at_fork(after_in_child=_begin_anew)


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
