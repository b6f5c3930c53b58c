"""Measures training steps on the compiled RTL: ``python -m slipstick.benchmarks.training_step``.

Cycles are those of the RTL, at the target's clock. Time over the wire is reckoned from the bytes
and exchanges of the step, which wait for one another. Every product is held against the golden
functions. With DRAM a step is two lists, and what they leave in DRAM is compared.
"""

import dataclasses
import sys
from collections import Counter
from contextlib import closing
from typing import Annotated, Any

import numpy as np
import typer
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DeviceStatus, Space

from .. import console, reports
from ..devices import Device
from ..devices.forwarding import ForwardingDevice
from ..devices.link import LinkDevice
from ..devices.simulation import SimulationDevice
from ..devices.wire_models import WireModel, find_wire_model
from ..failures import command_status
from ..targets import find_target
from ..training.device.comparison import ComparedArithmetic, Comparison
from ..training.device.products import DeviceProducts
from ..training.device.verify import noisy_pictures
from ..training.dram_step.trainer import DramTrainer
from ..training.dram_step.verify import KeepingArithmetic, compare_results
from ..training.network import INPUT, Kind, TrainingNetwork, initial_parameters
from ..training.networks import resnet8
from ..training.trainer import Trainer

COMMAND = "python -m slipstick.benchmarks.training_step"
REPORT = "training_step"
_RATE_SHIFT = 6
_PRODUCTS = ("forward", "input_gradient", "weight_gradient", "largest")


class _Measured(ForwardingDevice[Device]):
    """Counts cycles, bytes and exchanges, by what they are for."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.purpose = ""
        self.cycles: Counter[str] = Counter()
        self.up = self.down = self.exchanges = 0

    def write(self, space: Space, address: int, data: bytes) -> None:
        self.up += len(data)
        super().write(space, address, data)

    def read(self, address: int, count: int) -> bytes:
        self.down += count
        self.exchanges += 1
        return super().read(address, count)

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        status = super().wait(timeout_seconds)
        self.cycles[self.purpose] += status.cycles
        self.exchanges += 1
        return status


class _NamedProducts(DeviceProducts):
    """Tells the device what it multiplies for."""

    def __init__(self, device: _Measured) -> None:
        self._measured = device
        super().__init__(device)

    def forward(self, *arguments: Any, **options: Any) -> Any:
        self._measured.purpose = "forward"
        return super().forward(*arguments, **options)

    def input_gradient(self, *arguments: Any, **options: Any) -> Any:
        self._measured.purpose = "input_gradient"
        return super().input_gradient(*arguments, **options)

    def weight_gradient(self, *arguments: Any, **options: Any) -> Any:
        self._measured.purpose = "weight_gradient"
        return super().weight_gradient(*arguments, **options)

    def largest(self) -> int:
        self._measured.purpose = "largest"
        return super().largest()


def multiplications(network: TrainingNetwork) -> int:
    """Counts the multiplications of a training step per image.

    Each layer has three products; only the images need no input gradient.
    """
    total = 0
    for layer in network.learning:
        rows, columns, outputs = network.shapes[layer.name]
        inputs = 1 if layer.kind is Kind.DEPTHWISE else network.shapes[layer.inputs[0]][2]
        one = rows * columns * outputs * layer.kernel[0] * layer.kernel[1] * inputs
        total += one * (2 if layer.inputs[0] == INPUT else 3)
    return total


def measure_step(
    device: Device, network: TrainingNetwork, batch: int, wire: WireModel
) -> dict[str, Any]:
    """The second step of a training, whose ranges are known; the figures, ready for JSON.

    Parameters
    ----------
    device : Device
        With ``training``.
    network : TrainingNetwork
    batch : int
        A power of two.
    wire : WireModel
    """
    measured = _Measured(device)
    arithmetic = ComparedArithmetic(_NamedProducts(measured))
    trainer = Trainer(network, arithmetic, initial_parameters(network, 0))
    data = noisy_pictures(network, 2 * batch, 0)
    for step in range(2):
        measured.cycles.clear()
        measured.up = measured.down = measured.exchanges = 0
        places = step * batch + np.arange(batch)
        trainer.step(data.images[places], data.labels[places], _RATE_SHIFT)
    compared = arithmetic.comparison
    figures = _figures(measured, device.configuration, network, batch, wire)
    return {**figures, "compared": compared.elements, "mismatches": compared.mismatches}


def _figures(
    measured: _Measured,
    configuration: Configuration,
    network: TrainingNetwork,
    batch: int,
    wire: WireModel,
) -> dict[str, Any]:
    cycles, hertz = sum(measured.cycles.values()), configuration.clock_hz
    macs = multiplications(network)
    multipliers = configuration.pixels * configuration.rows * configuration.columns
    moved = wire.seconds(measured.up) + wire.seconds(measured.down)
    seconds = cycles / hertz + moved + measured.exchanges * wire.reply_seconds
    return {
        "batch": batch,
        "clock_mhz": hertz / 1e6,
        "macs_per_image": macs,
        "cycles_per_image": cycles / batch,
        "cycles": {name: measured.cycles[name] / batch for name in _PRODUCTS},
        "utilisation": macs * batch / cycles / multipliers,
        "core_images_per_second": batch / cycles * hertz,
        "wire": wire.name,
        "bytes_up_per_image": measured.up / batch,
        "bytes_down_per_image": measured.down / batch,
        "exchanges_per_image": measured.exchanges / batch,
        "images_per_second": batch / seconds,
    }


def measure_dram_step(
    device: LinkDevice, network: TrainingNetwork, batch: int, *, on_device: bool = False
) -> dict[str, Any]:
    """The third step of a training, from the device's DRAM; the figures, ready for JSON.

    The first step, of which only the ranges are needed, is taken by the golden functions. The
    second one brings the lists to DRAM, and the master rows where the device updates the weights.

    Parameters
    ----------
    device : LinkDevice
        With ``training`` and DRAM.
    network : TrainingNetwork
    batch : int
        A power of two.
    on_device : bool
        The device updates the weights.
    """
    initial, golden = initial_parameters(network, 0), KeepingArithmetic()
    ours = DramTrainer(network, device, initial, on_device=on_device)
    wanted = Trainer(network, golden, initial)
    data = noisy_pictures(network, 3 * batch, 0)
    wanted.step(data.images[:batch], data.labels[:batch], _RATE_SHIFT)
    ours.restore(wanted.arrays())
    comparison, moved = Comparison(), list[tuple[int, int]]()
    for step in (1, 2):
        some = slice(step * batch, (step + 1) * batch)
        images, labels = data.images[some], data.labels[some]
        before = device.bytes_up, device.bytes_down
        found = ours.step(images, labels, _RATE_SHIFT)
        moved.append((device.bytes_up - before[0], device.bytes_down - before[1]))
        compare_results(comparison, found, wanted.step(images, labels, _RATE_SHIFT))
        for name, tensor in ours.tensors().items():
            comparison.add(name, tensor, golden.kept[name])
    for name, parameters in wanted.parameters.items():
        comparison.add(f"{name} weights", ours.parameters[name].masters, parameters.masters)
    configuration = device.configuration
    cycles, hertz = sum(ours.list_cycles), configuration.clock_hz
    macs = multiplications(network)
    multipliers = configuration.pixels * configuration.rows * configuration.columns
    return {
        "batch": batch,
        "clock_mhz": hertz / 1e6,
        "macs_per_image": macs,
        "cycles_per_image": cycles / batch,
        "cycles": {
            name: count / batch
            for name, count in zip(("forward", "backward"), ours.list_cycles, strict=True)
        },
        "utilisation": macs * batch / cycles / multipliers,
        "core_images_per_second": batch / cycles * hertz,
        "updates_on_device": ours.updated,
        "first_bytes_up": moved[0][0],
        "bytes_up": moved[1][0],
        "bytes_down": moved[1][1],
        "compared": comparison.elements,
        "mismatches": comparison.mismatches,
    }


def _dram_benchmark(
    name: str, target: str, configuration: Configuration, batch: int, *, on_device: bool
) -> dict[str, Any]:
    with (
        console.step(f"ResNet-8's training step from DRAM on {name}, batches of {batch}"),
        closing(SimulationDevice(configuration)) as device,
    ):
        entry: dict[str, Any] = {
            "target": target,
            "dram": configuration.dram,
            "activation_bytes": configuration.activation_bytes,
            "weight_bytes": configuration.weight_bytes,
            **measure_dram_step(device, resnet8(), batch, on_device=on_device),
        }
    console.print_line(
        f"{entry['cycles_per_image']:,.0f} cycles per image at {entry['clock_mhz']:g} MHz:"
        f" {entry['core_images_per_second']:,.0f} images per second,"
        f" {console.percent(entry['utilisation'])} of the multipliers;"
        f" {entry['bytes_up']:,} bytes up and {entry['bytes_down']:,} down per step;"
        f" {entry['mismatches']} of {entry['compared']:,} elements differ"
    )
    return entry


def training_step_benchmark(
    target: Annotated[str, typer.Option(help="Whose hardware.")] = "ecpix5-85f-training",
    wire: Annotated[str, typer.Option(help="The wire to it, without DRAM.")] = "rgmii",
    batch: Annotated[int, typer.Option(help="Images of a step, a power of two.")] = 16,
    dram: Annotated[str, typer.Option(help="A chip of DRAM beside the target.")] = "",
    activation_bytes: Annotated[int, typer.Option(help="Other than the target's.")] = 0,
    weight_bytes: Annotated[int, typer.Option(help="Other than the target's.")] = 0,
    on_device: Annotated[
        bool, typer.Option("--on-device", help="With DRAM: the device updates the weights.")
    ] = False,
) -> int:
    """Measures, prints the figures and writes the report; 1 if a product was wrong."""
    configuration, link = find_target(target).configuration, find_wire_model(wire)
    changed: dict[str, Any] = {
        name: value
        for name, value in (
            ("dram", dram),
            ("activation_bytes", activation_bytes),
            ("weight_bytes", weight_bytes),
        )
        if value
    }
    configuration = dataclasses.replace(configuration, **changed)
    if configuration.dram:
        name = " ".join([target, *(f"{key}={value}" for key, value in changed.items())])
        entry = _dram_benchmark(name, target, configuration, batch, on_device=on_device)
        updates = ", updates on the device" if on_device else ""
        case = f"ResNet-8 {name} batch {batch}{updates}"
        reports.write_cases(REPORT, COMMAND, {case: entry})
        return 0 if entry["mismatches"] == 0 else 1
    with (
        console.step(f"ResNet-8's training step on {target}, batches of {batch}"),
        closing(SimulationDevice(configuration)) as device,
    ):
        entry = {"target": target, **measure_step(device, resnet8(), batch, link)}
    console.print_line(
        f"{entry['cycles_per_image']:,.0f} cycles per image at {entry['clock_mhz']:g} MHz:"
        f" {entry['core_images_per_second']:,.0f} images per second,"
        f" {console.percent(entry['utilisation'])} of the multipliers;"
        f" over {wire} {entry['images_per_second']:,.1f} images per second;"
        f" {entry['mismatches']} of {entry['compared']:,} elements differ"
    )
    reports.write_cases(REPORT, COMMAND, {f"ResNet-8 {target} batch {batch}": entry})
    return 0 if entry["mismatches"] == 0 else 1


def main() -> int:
    """The command line."""
    return command_status(training_step_benchmark)


if __name__ == "__main__":
    sys.exit(main())
