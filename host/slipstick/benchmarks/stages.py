"""Networks divided among boards: ``python -m slipstick.benchmarks.stages [CASE ...]``.

Each case cuts a network for equal boards, predicts images per second with core and wire, holds the
codes to those of one board on the golden model, and measures the rate with emulated boards: the
golden model's results after the time that core and wire would take.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import console, reports
from ..compiler.stages.pipeline import PipelinePlan, plan_pipeline
from ..compiler.stages.split import plan_split
from ..devices import Device
from ..devices.emulated import EmulatedDevice
from ..devices.group import DeviceGroup, GroupKind
from ..devices.model import ModelDevice
from ..errors import DeviceError, InputError
from ..failures import exit_status
from ..frontends import load
from ..program import Program
from ..runtime.executions import single_execution
from ..runtime.executor import Execution, Values
from ..runtime.stages.board_time import BoardTime, board_of
from ..runtime.stages.loading import divided_execution
from ..targets import find_target
from .suite import shared_folder

COMMAND = "python -m slipstick.benchmarks.stages"
REPORT = "stages"
NETWORK_SCRIPT = Path("tools", "make_network.py")
_EMULATED_SECONDS = 20e-3
"""Per image, at least, on emulated boards: this computer's own work is little beside it."""
_EMULATED_IMAGES = 200


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network on equal boards.

    Parameters
    ----------
    network : str
        A file of the shared models, or a network of ``tools/make_network.py``.
    target : str
    boards : int
    wire : str
        Between the host and each board.
    images : int
        That are held to one board on the golden model.
    splits : bool
        Whether the layers are divided, too, to compare.
    """

    network: str
    target: str
    boards: int
    wire: str
    images: int
    splits: bool = False


_MOBILENET = "tf2_mobilenet_v2_1.0_224_ptq"
_RESNET = "ic01_resnet8_int8"
_LARGE = {"network": _MOBILENET, "wire": "rgmii", "images": 1}
_SMALL = {"target": "ulx3s-25f", "boards": 2, "wire": "rmii"}
CASES = {
    "mobilenet_v2-2": Case(target="1x16x16", boards=2, **_LARGE),
    "mobilenet_v2-4": Case(target="1x16x16", boards=4, **_LARGE),
    "mobilenet_v2-85f-2": Case(target="ecpix5-85f", boards=2, **_LARGE),
    "mobilenet_v2-85f-4": Case(target="ecpix5-85f", boards=4, **_LARGE),
    "resnet8-2": Case(network=_RESNET, target="1x16x16", boards=2, wire="rgmii", images=16),
    "resnet8-4": Case(network=_RESNET, target="1x16x16", boards=4, wire="rgmii", images=16),
    "resnet8-25f": Case(network=_RESNET, images=16, splits=True, **_SMALL),
    "vww-25f": Case(network="vww01_mobilenetv1_025_int8", images=4, **_SMALL),
    "chain-25f": Case(network="chain", images=16, splits=True, **_SMALL),
}


def measure(case: Case) -> dict[str, Any]:
    """Figures of a case.

    Raises
    ------
    DeviceError
        If results differ from those of one board.
    """
    board = board_of(find_target(case.target), case.wire)
    assert board.wire is not None
    boards = [board] * case.boards
    with _network(case.network) as path:
        graph = load(path)
    begun = time.perf_counter()
    plan = plan_pipeline(graph, boards)
    seconds = time.perf_counter() - begun
    whole = plan.wholes[0]
    single = board.seconds(whole)
    slowest = max(stage.program.predicted_cycles for stage in plan.stages)
    rate = None if any(p.units for p in plan.program.stages) else emulated_rate(plan, board)
    return {
        "network": graph.name,
        "target": case.target,
        "fingerprint": whole.fingerprint,
        "boards": case.boards,
        "wire": case.wire,
        "plan_seconds": seconds,
        "one_board": {
            "streamed": whole.is_streamed,
            "predicted_cycles": whole.predicted_cycles,
            "inferences_per_second": 1 / single,
            "inferences_per_second_one_by_one": 1 / board.seconds(whole, 1),
        },
        "stages": [
            {
                "layers": len(stage.program.layers),
                "predicted_cycles": stage.program.predicted_cycles,
                "seconds": stage.seconds,
                "streamed": stage.program.is_streamed,
                "weight_bytes": stage.weights,
                "received_bytes": stage.received,
                "sent_bytes": stage.sent,
            }
            for stage in plan.stages
        ],
        "inferences_per_second": 1 / plan.seconds,
        "speed_up": single / plan.seconds,
        "speed_up_of_cycles": whole.predicted_cycles / slowest,
        "emulated_inferences_per_second": rate,
        "emulated_of_predicted": None if rate is None else rate * plan.seconds,
        "equal_images": equal_images(plan, case.images),
        **(_split_figures(case, board, graph) if case.splits else {}),
    }


def _split_figures(case: Case, board: BoardTime, graph: Any) -> dict[str, Any]:
    split = plan_split(graph, [board] * case.boards)
    return {
        "split_inferences_per_second": 1 / split.seconds,
        "split_bytes_per_inference": split.moved_bytes,
    }


def equal_images(plan: PipelinePlan, count: int) -> int:
    """Images whose codes on the pipeline of golden models are those of one golden model.

    Raises
    ------
    DeviceError
        If some are not.
    """
    whole = plan.wholes[0]
    feeds = _feeds(whole, count)
    with closing(ModelDevice(whole.hardware)) as device:
        expected = Execution(whole, device).infer_batch(feeds, whole.outputs)
    values = _piped(plan, lambda stage: ModelDevice(stage.hardware), feeds)[0]
    for name in whole.outputs:
        same = (values[name] == expected[name]).reshape(count, -1).all(axis=1)
        if not same.all():
            raise DeviceError(
                f"{whole.name}: {name} of image {int(same.argmin())} must be that of one board"
            )
    return count


def emulated_rate(plan: PipelinePlan, board: BoardTime) -> float:
    """Images per second of a batch on emulated boards, in the boards' time.

    The time that it takes to fill the pipeline is counted.
    """
    assert board.wire is not None
    wire, slower = board.wire.name, max(1.0, math.ceil(_EMULATED_SECONDS / plan.seconds))
    whole = plan.wholes[0]
    images = {
        name: np.repeat(value, _EMULATED_IMAGES, 0) for name, value in _feeds(whole, 1).items()
    }

    def device_of(stage: Program) -> Device:
        return EmulatedDevice(stage.hardware, wire, slower)

    _, seconds = _piped(plan, device_of, images, warm=True)
    return _EMULATED_IMAGES * slower / seconds


def _piped(
    plan: PipelinePlan,
    device_of: Callable[[Program], Device],
    feeds: Values,
    *,
    warm: bool = False,
) -> tuple[Values, float]:
    """The outputs of a pipeline, and the seconds that it took; ``warm``: after one image."""
    names = [f"board {number}" for number in range(1, len(plan.stages) + 1)]
    devices = [device_of(stage.program) for stage in plan.stages]
    with closing(DeviceGroup(GroupKind.PIPELINE, names, devices)) as group:
        execution = divided_execution(plan.program, group, single_execution)
        if warm:
            execution.infer_batch({name: value[:1] for name, value in feeds.items()})
        begun = time.perf_counter()
        values = execution.infer_batch(feeds)
        return values, time.perf_counter() - begun


def _feeds(program: Program, count: int) -> Values:
    generator = np.random.default_rng(1)
    feeds = {}
    for name in program.inputs:
        tensor = program.tensors[name]
        limits = np.iinfo(tensor.dtype)
        shape = (count, *tensor.shape[1:])
        feeds[name] = generator.integers(
            limits.min, limits.max, shape, dtype=tensor.dtype, endpoint=True
        )
    return feeds


@contextmanager
def _network(name: str) -> Iterator[Path]:
    """The file of a network."""
    path = shared_folder() / "models" / f"{name}.tflite"
    if path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{name}.tflite"
        command = [sys.executable, str(NETWORK_SCRIPT), name, str(made), "--side", "32"]
        outcome = subprocess.run(command, capture_output=True, text=True)
        if outcome.returncode:
            raise DeviceError(f"{path} must be there, or {name} a network of {NETWORK_SCRIPT}")
        yield made


def _kept() -> dict[str, Any]:
    """The cases of the last report."""
    try:
        contents = json.loads(Path(reports.FOLDER, f"{REPORT}.json").read_text("utf-8"))
        return dict(contents["divided"])
    except (OSError, ValueError, KeyError):
        return {}


def main() -> int:
    """Measures the cases that are named, or all; prints them, and keeps them in the report."""
    wanted = sys.argv[1:] or list(CASES)
    if not set(wanted) <= set(CASES):
        raise InputError(f"cases must be of {', '.join(CASES)}, not {' '.join(wanted)}")
    figures, path = _kept(), Path(reports.FOLDER)
    for name in wanted:
        with console.step(name):
            figures[name] = measure(CASES[name])
        # a long case that fails must not lose those before it
        path = reports.write(REPORT, COMMAND, {"divided": figures})
    _show({name: figures[name] for name in CASES if name in figures})
    console.print_line(f"written to {path}")
    return 0


def _show(figures: dict[str, dict[str, Any]]) -> None:
    columns = {
        "network": "left",
        "boards": "left",
        "wire": "left",
        "one board, images/s": "right",
        "pipeline, images/s": "right",
        "speed-up": "right",
        "of cycles": "right",
        "emulated, images/s": "right",
        "split, images/s": "right",
        "equal": "right",
    }
    rows = [
        [
            entry["network"],
            f"{entry['boards']} x {entry['target']}",
            entry["wire"],
            f"{entry['one_board']['inferences_per_second']:,.1f}"
            + (" (streams)" if entry["one_board"]["streamed"] else ""),
            f"{entry['inferences_per_second']:,.1f}",
            f"{entry['speed_up']:.2f}",
            f"{entry['speed_up_of_cycles']:.2f}",
            _optional(entry["emulated_inferences_per_second"]),
            _optional(entry.get("split_inferences_per_second")),
            f"{entry['equal_images']} images",
        ]
        for entry in figures.values()
    ]
    console.print_table("Networks divided among equal boards", columns, rows)


def _optional(rate: float | None) -> str | None:
    return None if rate is None else f"{rate:,.1f}"


if __name__ == "__main__":
    sys.exit(exit_status(main))
