"""Number of threads of linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from threadpoolctl import threadpool_limits

F = TypeVar("F", bound=Callable[..., object])


def with_one_blas_thread(function: F) -> F:
    """Return ``function`` with one thread for the linear algebra within it.

    Threads wait for each other longer than products of small matrices take: next to other busy
    programs a fit of a five-joint arm took 18 times as long with two threads.
    """
    limited: F = threadpool_limits.wrap(limits=1, user_api="blas")(function)
    return limited
