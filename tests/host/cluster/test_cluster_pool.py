"""Jobs on a cluster's workers: results, files, errors, and workers that end."""

import json
from collections.abc import Iterator
from pathlib import Path

import cluster_jobs
import numpy as np
import pytest
from pretended_tools import SYNTHESIS, TARGET, placement, pretend
from slipstick.cluster import distributed_setup
from slipstick.cluster.opening import open_cluster_pool
from slipstick.cluster.placing import SeedSpread
from slipstick.cluster.pool import ClusterPool
from slipstick.cluster.verification import Request, check_images, check_networks
from slipstick.errors import DeviceError, TargetError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.explore.explorer import explore
from slipstick.explore.sweeps import make_configurations
from slipstick.fpga import build as flow
from slipstick.targets import find_target
from slipstick.verify.random_networks import campaign
from slipstick.verify.verifier import Verifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text(name)
    return folder


@pytest.fixture(scope="module")
def pool(folder: Path) -> Iterator[ClusterPool]:
    files = [str(folder / "one.txt"), str(folder / "two.txt"), str(MODEL)]
    with open_cluster_pool("local:2", files) as opened:
        yield opened


def test_jobs_have_copies_of_the_files(pool: ClusterPool, folder: Path) -> None:
    one, two = str(folder / "one.txt"), str(folder / "two.txt")
    found = pool.submit(cluster_jobs.read, one, (two, one), "three").result()
    assert found == ("one", ["two", "one"], "three")
    assert pool.submit(cluster_jobs.name_of, one).result() == ("one.txt", True)


def test_results_are_in_order(pool: ClusterPool) -> None:
    assert list(pool.map(abs, range(-20, 0))) == list(range(20, 0, -1))


def test_errors_are_those_of_the_job(pool: ClusterPool) -> None:
    with pytest.raises(TargetError, match="^target 7 is none$"):
        pool.submit(cluster_jobs.refuse, 7).result()


def test_a_job_whose_worker_ends_runs_again(pool: ClusterPool, tmp_path: Path) -> None:
    others = [pool.submit(cluster_jobs.rest, 0.2) for _ in range(4)]
    assert pool.submit(cluster_jobs.die_once, str(tmp_path / "died")).result() > 0
    assert (tmp_path / "died").exists()
    assert all(job.result() > 0 for job in others)


def test_a_sweep_is_that_of_one_process(pool: ClusterPool) -> None:
    base, part = find_target("ulx3s-85f"), find_target("ulx3s-85f").part
    assert part is not None
    values = {"rows": (8,), "columns": (8,)}
    configurations, _ = make_configurations(base.configuration, values, part)
    here = explore([str(MODEL)], configurations, part, jobs=1)
    assert explore([str(MODEL)], configurations, part, jobs=1, pool=pool) == here


def test_verified_images_are_those_of_one_process(pool: ClusterPool) -> None:
    configuration = find_target("sim-small").configuration
    verifier = Verifier(MODEL, configuration)
    feeds = {verifier.program.inputs[0]: load_digits()[2][:5]}
    told: list[int] = []
    request = Request(str(MODEL), configuration, None, False, 3, ())
    found = check_images(pool, request, feeds, told.append)
    assert found == verifier.check(feeds, lambda what, total: lambda count: None, rtl=False)
    assert sum(told) == 5


def test_random_networks_are_those_of_one_process(
    pool: ClusterPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = campaign.Campaign(
        networks=1, seed=5, configuration=find_target("sim-small").configuration, processes=1
    )
    here = campaign.run(asked, lambda count: None)
    assert check_networks(pool, asked, lambda count: None) == here


def test_seeds_of_a_build_come_back(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "_generate", lambda *arguments: None)
    pretend(
        tmp_path / "tools",
        monkeypatch,
        YOSYS=SYNTHESIS,
        NEXTPNR_ECP5=placement(),
        ECPPACK="Path(arguments[-1]).write_bytes(Path('seed_1/timing.json').read_bytes())",
    )
    # the workers begin with the tools' names
    with open_cluster_pool("local:1") as own:
        done = flow.build(TARGET, seeds=(1, 2), output=tmp_path / "out", spread=SeedSpread(own))
    assert [attempt.seed for attempt in done.attempts] == [1, 2]
    assert done.layout.fmax_mhz == pytest.approx(104.26)
    assert json.loads(done.bitstream.read_text())["fmax"]
    assert (tmp_path / "out" / "seed_2" / "place_and_route.log").exists()


def test_a_job_that_ends_every_worker_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = "distributed.scheduler.allowed-failures"
    monkeypatch.setitem(distributed_setup._SETTINGS, allowed, 1)
    with open_cluster_pool("local:1") as own:
        with pytest.raises(DeviceError, match="2 workers ended one after the other with the same"):
            own.submit(cluster_jobs.die).result()


def test_what_many_jobs_need_is_sent_once(pool: ClusterPool) -> None:
    data = pool.share(np.arange(1000))
    assert [int(job.result()) for job in [pool.submit(np.sum, data) for _ in range(3)]] == [
        499500
    ] * 3
