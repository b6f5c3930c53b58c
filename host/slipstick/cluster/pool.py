"""A cluster as an ``Executor``: jobs such as compilations and trainings."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from .connection import Cluster
from .resources import job_needs
from .tasks import call

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ClusterPool(Executor):
    """Runs functions of modules on a cluster's workers, each one at a time.

    A job whose worker ends is run again on another one, so it must be pure.

    Parameters
    ----------
    cluster : Cluster
        It stays open.
    files : iterable of str
        Files of this machine that the jobs read: where an argument is such a path, alone or in a
        tuple, the job gets the path of its own copy.
    needs : mapping of float by name, optional
        Resources of a worker; by default this version of Slipstick, without a board.

    Raises
    ------
    DeviceError
        If there is no such worker.
    """

    def __init__(
        self,
        cluster: Cluster,
        files: Iterable[str] = (),
        needs: Mapping[str, float] | None = None,
    ) -> None:
        self._cluster, self._needs = cluster, dict(needs or job_needs())
        cluster.wait_for_workers(self._needs)
        self._files = cluster.share_files(dict.fromkeys(files))

    @property
    def size(self) -> int:
        """Workers that there are."""
        return max(1, len(self._cluster.workers(self._needs)))

    @property
    def given_again(self) -> int:
        """Counts how often a job went to another worker because its own one had ended."""
        return sum(self._cluster.given_again.values())

    def submit(
        self,
        fn: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> "Future[Result]":
        """Gives a job to the workers; keyword arguments are not taken."""
        if kwargs:
            raise TypeError(f"jobs must have no keyword arguments, not {', '.join(kwargs)}")
        return self.submit_elsewhere((), fn, *args)

    def submit_elsewhere(
        self, avoided: Iterable[str], function: Callable[..., Result], *arguments: object
    ) -> "Future[Result]":
        """Gives a job to workers of other addresses, if there is one."""
        only = self._others(avoided)
        return self._cluster.submit(
            call, function, arguments, self._files, needs=self._needs, only=only
        )

    def keep_elsewhere(
        self,
        avoided: Iterable[str],
        function: Callable[..., Any],
        *arguments: object,
        at: str = "",
    ) -> Any:
        """As ``submit_elsewhere``, but the result stays with the worker: see ``Cluster.keep``.

        Parameters
        ----------
        at : str
            Address of the worker that has what the job needs, if there is one.
        """
        only = [at] if at else self._others(avoided)
        return self._cluster.keep(
            call, function, arguments, self._files, needs=self._needs, only=only
        )

    def pick(self, function: Callable[[Any], Result], kept: Any) -> "Future[Result]":
        """Fetches a function's result of what a worker keeps; the worker computes it."""
        # without the files, only that worker has what the task needs: so it runs there
        return self._cluster.submit(function, kept, needs=self._needs)

    def _others(self, avoided: Iterable[str]) -> list[str]:
        bad = set(avoided)
        others = [each.address for each in self._cluster.workers(self._needs) if bad]
        return [address for address in others if address not in bad]

    def share(self, data: Any) -> Any:
        """Returns an argument that stands for data which many jobs get, and is sent once."""
        return self._cluster.share(data)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancels what is left."""
        self._cluster.forget()
