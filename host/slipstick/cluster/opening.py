"""Opens clusters for commands: sessions with boards, and pools of workers for jobs."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration

from .. import console
from ..devices import hardware_of, open_device
from ..loading import configuration_of, load_program
from .address import ClusterAddress, parse_address
from .checks import check_independent
from .distributed_setup import load_distributed

if TYPE_CHECKING:
    from .board import Opener
    from .connection import Cluster
    from .pool import ClusterPool
    from .session import ClusterSession


@contextmanager
def open_cluster_session(
    model: Path,
    cluster: str,
    device: str,
    target: str | None,
    semantics: str | None = None,
    *,
    opener: "Opener" = open_device,
) -> Iterator["ClusterSession"]:
    """A network on the boards of a cluster.

    Parameters
    ----------
    model : Path
    cluster : str
        ``local:N``, or the address of a scheduler.
    device : str
        Of each process of ``local:N``. Workers of a scheduler have their own.
    target, semantics : str, optional
        As for ``InferenceSession``.
    opener : callable
        Opens the devices of ``local:N``.

    Raises
    ------
    SlipstickError
        If the network cannot be compiled or keeps values, or there is no cluster or no board.
    """
    address = parse_address(cluster)
    load_distributed()
    from .board import Board
    from .session import ClusterSession

    program = load_program(model, _wanted_hardware(device, target), semantics)
    check_independent(program)
    board = None
    if address.is_local:
        board = Board(device, program.hardware, opener=opener)
        prepare_device(device, program.hardware)
    with open_cluster(address, board) as opened:
        with console.waiting(f"loading {program.name} on the boards of {cluster}"):
            session = ClusterSession(opened, program)
        yield session


@contextmanager
def open_cluster_pool(cluster: str, files: Iterable[str] = ()) -> Iterator["ClusterPool"]:
    """Workers for jobs that need no board.

    Parameters
    ----------
    cluster : str
        ``local:N``, or the address of a scheduler.
    files : iterable of str
        That jobs read; see ``ClusterPool``.
    """
    address = parse_address(cluster)
    load_distributed()
    from .pool import ClusterPool

    with open_cluster(address) as opened:
        yield ClusterPool(opened, files)


@contextmanager
def open_board_pool(
    cluster: str, device: str, configuration: Configuration
) -> Iterator["ClusterPool"]:
    """Workers with boards of some hardware, for jobs that use them by ``Board.use``.

    Parameters
    ----------
    cluster : str
        ``local:N``, or the address of a scheduler.
    device : str
        Of each process of ``local:N``. Workers of a scheduler have their own.
    configuration : Configuration
    """
    address = parse_address(cluster)
    load_distributed()
    from .board import Board
    from .pool import ClusterPool
    from .resources import board_needs

    board = None
    if address.is_local:
        board = Board(device, configuration)
        prepare_device(device, configuration)
    with open_cluster(address, board) as opened:
        yield ClusterPool(opened, needs=board_needs(configuration.fingerprint))


@contextmanager
def open_cluster(address: ClusterAddress, board: object = None) -> Iterator["Cluster"]:
    """A cluster; the link to its page and what is odd about it are on the standard error."""
    from .board import Board
    from .connection import Cluster

    assert board is None or isinstance(board, Board)
    with console.waiting(f"opening {address.text}"):
        opened = Cluster(address, board)
    with opened:
        if opened.dashboard:
            print(f"slipstick: Dask's dashboard is at {opened.dashboard}", file=sys.stderr)
        yield opened
        for worker in opened.strangers:
            print(f"slipstick: worker {worker.label} was given nothing", file=sys.stderr)


def _wanted_hardware(device: str, target: str | None) -> Configuration | None:
    """The hardware that was asked for by name, None if it was not."""
    return configuration_of(target) if target is not None else hardware_of(device)


def prepare_device(device: str, configuration: Configuration) -> None:
    """Compiles a simulation once, before several processes ask for it."""
    if device.partition(":")[0] == "sim":
        with console.waiting(f"opening {device}"), closing(open_device(device, configuration)):
            pass


def told_devices(cluster: str, device: str) -> str:
    """Names the devices of a cluster for messages: those of a scheduler have their own names."""
    return f"{device} of {cluster}" if parse_address(cluster).is_local else cluster
