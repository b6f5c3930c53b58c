"""``slipstick train`` on pools and clusters: the bits of one device, and those of fewer bits."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from slipstick.examples.digits import MODEL, load_digits
from slipstick.training import loop
from slipstick.training.checkpoints import Checkpoint, read_checkpoint, write_checkpoint

POOL = "pool:model,model"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "train.npz"
    x, y = load_digits()[:2]
    np.savez(path, x=x[:160], y=y[:160])
    return path


@pytest.fixture
def trained(slipstick, data: Path, tmp_path: Path):
    """Trains digits; the JSON, and what the checkpoint of a name has then."""

    def run(name: str, *options: object) -> tuple[dict, dict[str, np.ndarray]]:
        path = tmp_path / name
        status, out, err = slipstick(
            *("train", MODEL, "--data", data, "--epochs", 2, "--json", "--checkpoint", path),
            *options,
        )
        assert status == 0, err
        return json.loads(out), read_checkpoint(path).arrays

    return run


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch):
    """Ends a training behind some of its checkpoints, one of them in the middle of an epoch."""

    @contextmanager
    def stop(after: int) -> Iterator[None]:
        written = 0

        def write_few(path: Path, checkpoint: Checkpoint) -> None:
            nonlocal written
            if written == after:
                raise KeyboardInterrupt
            written += 1
            write_checkpoint(path, checkpoint)

        with monkeypatch.context() as patch, pytest.raises(AssertionError):
            patch.setattr(loop, "write_checkpoint", write_few)
            yield

    return stop


def check_equal(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_a_pool_and_a_cluster_have_the_bits_of_one_device(trained, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.tflite" for name in ("one", "pool", "cluster")]
    one, wanted = trained("one", "-o", files[0])
    pool, found = trained("pool", "--device", POOL, "-o", files[1], "--plot", tmp_path / "x.png")
    check_equal(found, wanted)
    cluster, found = trained("cluster", "--cluster", "local:2", "-o", files[2])
    check_equal(found, wanted)
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()
    assert one["history"] == pool["history"] == cluster["history"]
    assert (pool["device"], pool["devices"], pool["given_again"]) == (POOL, 2, 0)
    assert (cluster["device"], cluster["workers"]) == ("model of local:2", 2)
    assert not {"devices", "workers", "given_again"} & set(one)
    for result in (one, pool, cluster):
        assert (result["gradient_bits"], result["local_steps"], result["parts"]) == (32, 1, None)
        assert result["images_per_second"] > 0 and result["bytes_per_step"] == 0


def test_another_number_of_devices_goes_on(
    trained, stopped, slipstick, data: Path, tmp_path: Path
) -> None:
    """With 32 bits, whatever they are; with fewer, the parts must be the same."""
    _, wanted = trained("whole")
    for device in ("model", POOL):
        with stopped(after=2):
            trained("part", "--device", device, "--checkpoint-steps", 3, "--resume")
    result, found = trained("part", "--device", "pool:model,model,model", "--resume")
    assert 0 < result["steps"] < 12
    check_equal(found, wanted)
    few = ("--gradient-bits", 1, "--device", POOL)
    trained("few", *few)
    asked = ("train", MODEL, "--data", data, "--epochs", 2, "--checkpoint", tmp_path / "few")
    for options, message in (
        ((*few, "--parts", 4), "its parts must be 4, not 2"),
        (("--gradient-bits", 2, "--parts", 2), "its gradient_bits must be 2, not 1"),
        ((), "its gradient_bits must be 32, not 1"),
        (("--local-steps", 2), "its gradient_bits must be 32, not 1"),
    ):
        status, _, err = slipstick(*asked, *options, "--resume")
        assert status == 2 and message in err and err.count("\n") == 1
    result, _ = trained("few", "--gradient-bits", 1, "--parts", 2, "--resume")
    assert result["steps"] == 0 and result["devices"] == 1


@pytest.mark.parametrize(("bits", "smaller"), [(8, 3.8), (4, 7.5), (2, 14), (1, 26)])
def test_compressed_gradients(trained, bits: int, smaller: float) -> None:
    options = ("--layers", 2, "--device", POOL)
    whole = trained("whole", *options)[0]
    found = trained("part", *options, "--gradient-bits", bits)[0]
    assert (found["gradient_bits"], found["parts"]) == (bits, 2)
    assert whole["gradient_bytes_per_step"] > smaller * found["gradient_bytes_per_step"]
    assert found["accuracy"] > 0.9 and found["history"] != whole["history"]


@pytest.mark.parametrize("options", [("--gradient-bits", 1), ("--local-steps", 3)], ids=str)
def test_stopped_and_resumed(trained, stopped, options: tuple[object, ...]) -> None:
    _, wanted = trained("whole", *options, "--device", POOL)
    arguments = ("part", *options, "--device", POOL, "--checkpoint-steps", 2)
    with stopped(after=3):
        trained(*arguments)
    result, found = trained(*arguments, "--resume")
    assert 0 < result["steps"] < 16
    check_equal(found, wanted)


def test_what_people_read(slipstick, data: Path) -> None:
    status, out, _ = slipstick("train", MODEL, "--data", data, "--epochs", 1, "--device", POOL)
    assert status == 0 and "2 devices, 0 jobs done again" in " ".join(out.split())


def test_workers_of_a_scheduler_have_no_device_of_the_command(slipstick, data: Path) -> None:
    asked = ("train", MODEL, "--data", data, "--cluster", "tcp://127.0.0.1:9")
    status, _, err = slipstick(*asked, "--device", "sim")
    assert status == 2 and "--device is what each worker of tcp://127.0.0.1:9" in err


def test_the_board_of_a_worker(trained, slipstick, data: Path) -> None:
    """A core per process, here the golden model of one."""
    few = ("--limit", 20, "--layers", 1, "--epochs", 1)
    _, wanted = trained("one", *few)
    options = ("--cluster", "local:2", "--device", "model:sim-training")
    result, found = trained("two", *few, *options)
    check_equal(found, wanted)
    assert (result["device"], result["workers"]) == ("model:sim-training of local:2", 2)
    assert result["bytes_per_step"] > 16 * 64
    asked = ("train", MODEL, "--data", data, "--cluster", "local:2", "--device", POOL)
    status, _, err = slipstick(*asked)
    assert status == 2 and f"a worker of local:2 must have one device, not {POOL}" in err
