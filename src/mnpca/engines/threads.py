"""Threads that never change a result.

BLAS rounds differently with another number of threads. Here the work is cut into pieces whose size
does not depend on the threads, each piece is computed by one BLAS thread, and the threads only
share the pieces out.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_pool: ContextVar[ThreadPoolExecutor | None] = ContextVar("pool", default=None)


@contextmanager
def worker_threads(n_jobs: int | None = None) -> Iterator[None]:
    """Compute in `n_jobs` threads inside the block; results do not depend on the number.

    None takes as many as the environment gives to BLAS (``OMP_NUM_THREADS`` and the like).
    """
    if n_jobs is None:
        found = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
        n_jobs = max(found, default=1)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_jobs) as pool:
        token = _pool.set(pool if n_jobs > 1 else None)
        try:
            yield
        finally:
            _pool.reset(token)


def each(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """Apply a function to every piece, in the threads of `worker_threads`; keep the order.

    A single piece is computed where it is: handing it over costs more than most pieces.
    """
    pool, pieces = _pool.get(), list(pieces)
    if pool is None or len(pieces) < 2:
        return list(map(function, pieces))
    return list(pool.map(function, pieces))


def stream(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    """Yield a function of every piece in order; a result that was taken is not kept."""
    pool = _pool.get()
    return map(function, pieces) if pool is None else pool.map(function, pieces)


def slices(size: int, length: int) -> list[slice]:
    """Cut ``range(size)`` into slices of the given length."""
    return [slice(start, min(start + length, size)) for start in range(0, size, length)]
