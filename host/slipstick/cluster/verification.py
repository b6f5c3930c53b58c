"""`slipstick verify` on a cluster's workers: some images, or some random networks, per job."""

import math
from collections.abc import Callable, Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from slipstick_rtl.config import Configuration

from ..verify.comparisons import CheckedTensor
from ..verify.random_networks.campaign import CHUNK, Campaign, Tally, run
from ..verify.verifier import Verifier
from .pool import ClusterPool

MOST_IMAGES = 16
"""Most images of a job: as many as the verifier keeps all tensors of."""
MOST_NETWORKS = 10 * CHUNK
JOBS_PER_WORKER = 4

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Request:
    """Request to verify a network.

    Parameters
    ----------
    path : str
    configuration : Configuration
    semantics : str or None
    rtl : bool
    layer_limit : int
    rtl_layers : tuple of str
        As for ``Verifier.check``.
    """

    path: str
    configuration: Configuration
    semantics: str | None
    rtl: bool
    layer_limit: int
    rtl_layers: tuple[str, ...]


def check_images(
    pool: ClusterPool, request: Request, feeds: Values, advance: Callable[[int], object]
) -> list[CheckedTensor]:
    """As ``Verifier.check``, some images per job.

    Parameters
    ----------
    pool : ClusterPool
        It has the network's file.
    request : Request
    feeds : mapping of array by input name
    advance : callable
        Told how many more images are done.
    """
    count = len(next(iter(feeds.values())))
    size = min(MOST_IMAGES, math.ceil(count / (JOBS_PER_WORKER * pool.size)))
    jobs = {}
    for first in range(0, count, size):
        part = {name: value[first : first + size] for name, value in feeds.items()}
        images = min(size, count - first)
        # the first images of all are those whose every layer the RTL shows
        shown = max(0, min(images, request.layer_limit - first))
        own = replace(request, layer_limit=shown)
        jobs[pool.submit(_check_some, request.path, own, part)] = first, images
    found = {}
    for job in as_completed(jobs):
        first, images = jobs[job]
        found[first] = job.result()
        advance(images)
    checked, *others = (found[first] for first in sorted(found))
    for each in others:
        checked = [one.plus(other) for one, other in zip(checked, each, strict=True)]
    return checked


def _check_some(path: str, request: Request, feeds: Values) -> list[CheckedTensor]:
    """On a worker; ``path`` is its own copy of the network."""
    verifier = _verifier(path, request.configuration, request.semantics)
    layers = request.rtl_layers
    return verifier.check(
        feeds,
        lambda what, total: lambda count: None,
        rtl=request.rtl and not (layers and not request.layer_limit),
        layer_limit=request.layer_limit,
        rtl_layers=layers,
    )


@lru_cache(maxsize=2)
def _verifier(path: str, configuration: Configuration, semantics: str | None) -> Verifier:
    return Verifier(path, configuration, semantics)


def check_networks(
    pool: ClusterPool, campaign: Campaign, advance: Callable[[int], object]
) -> Tally:
    """As ``campaign.run``, some networks per job; each job has a process of its own for them.

    Parameters
    ----------
    pool : ClusterPool
    campaign : Campaign
    advance : callable
        Told how many more networks are done.
    """
    fair = math.ceil(campaign.networks / (JOBS_PER_WORKER * pool.size))
    size = max(CHUNK, min(MOST_NETWORKS, fair))
    jobs = {}
    for first in range(0, campaign.networks, size):
        networks = min(size, campaign.networks - first)
        part = replace(
            campaign,
            networks=networks,
            seed=campaign.seed + first,
            rtl=max(0, min(networks, campaign.rtl - first)),
            processes=1,
        )
        jobs[pool.submit(_check_part, part)] = networks
    tally = Tally()
    for job in as_completed(jobs):
        tally.join(job.result())
        advance(jobs[job])
    tally.findings.sort(key=lambda outcome: outcome.seed)
    return tally


def _check_part(campaign: Campaign) -> Tally:
    """On a worker."""
    return run(campaign, lambda count: None)
