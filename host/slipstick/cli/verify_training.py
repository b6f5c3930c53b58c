"""``slipstick verify-training``: a device's training steps held against the golden functions."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console, reports
from ..devices import Device, open_device
from ..devices.link import LinkDevice
from ..errors import InputError
from ..training.device.verify import Verification, verify_training
from ..training.dram_step.verify import verify_dram_training
from ..training.int8 import Range
from ..training.network import TrainingNetwork
from ..training.networks import digits_cnn, ds_cnn, mnist_cnn, resnet8
from ..training.opened_trainer import Updater
from .options import DEVICE_HELP, Json, check_least

DEFAULT_DEVICE = "sim:sim-training"
NETWORKS = {make().name: make for make in (digits_cnn, mnist_cnn, resnet8, ds_cnn)}
LARGEST_SHIFT = 24


def verify_training_command(
    network: Annotated[
        str, typer.Argument(help=f"One of {', '.join(NETWORKS)}.")
    ] = digits_cnn().name,
    device: Annotated[
        str, typer.Option("--device", "-d", help=f"{DEVICE_HELP} Its target is for training.")
    ] = DEFAULT_DEVICE,
    steps: Annotated[int, typer.Option(help="Training steps.")] = 10,
    batch: Annotated[int, typer.Option(help="Images of a step, a power of two.")] = 8,
    rate_shift: Annotated[int, typer.Option(help="The learning rate is 2^-N.")] = 6,
    source: Annotated[
        Range, typer.Option("--range", help="Whose largest magnitude chooses the shifts.")
    ] = Range.PREVIOUS,
    update: Annotated[
        Updater,
        typer.Option(help="Who updates the weights in steps from DRAM, where the device can."),
    ] = Updater.DEVICE,
    seed: Annotated[int, typer.Option(help="Of first weights and pictures.")] = 0,
    report: Annotated[
        Path | None, typer.Option("--report", "-o", help="JSON file for the figures.")
    ] = None,
    json: Json = False,
) -> None:
    """Train on a device, and compare every product and all weights with the golden functions.

    Pictures are random ones that can be learned. With DRAM and the range "previous", all steps but
    the first run from there, and every activation and error is compared. Gradients of weights are
    compared where the host updates the weights. Exit with 1 if anything differs.
    """
    check_least("--steps", steps, 1)
    check_least("--batch", batch, 1)
    check_least("--seed", seed, 0)
    if batch & (batch - 1):
        raise InputError(f"--batch must be a power of two, not {batch}")
    if not 0 <= rate_shift <= LARGEST_SHIFT:
        raise InputError(f"--rate-shift must be within 0..{LARGEST_SHIFT}, not {rate_shift}")
    chosen = _network(network)
    begun = time.monotonic()
    opened = open_device(device)
    try:
        with console.progress("verifying training", steps) as done:
            found = _verifier(opened, source, update)(
                chosen, steps=steps, batch=batch, rate_shift=rate_shift, seed=seed, done=done
            )
    finally:
        opened.close()
    figures = {"network": network, "device": device, "range": str(source), "seed": seed}
    figures |= {"updates_on_device": found.updated}
    figures |= {"batch": batch, **_figures(found), "seconds": round(time.monotonic() - begun, 1)}
    if report is not None:
        reports.write_file(report, reports.command_line(), figures)
    if json:
        console.print_json(figures)
    else:
        _show(figures)
    if found.mismatches:
        raise typer.Exit(1)


def _verifier(device: Device, source: Range, update: Updater) -> Callable[..., Verification]:
    """Verifies steps from DRAM, where the device has one and shifts are known before a step."""
    if source is Range.PREVIOUS and isinstance(device, LinkDevice):
        if device.configuration.dram_chip is not None:
            return partial(verify_dram_training, device=device, on_device=update is Updater.DEVICE)
    return partial(verify_training, device=device, source=source)


def _network(name: str) -> TrainingNetwork:
    if name not in NETWORKS:
        raise InputError(f"NETWORK must be one of {', '.join(NETWORKS)}, not {name!r}")
    return NETWORKS[name]()


def _figures(found: Verification) -> dict[str, Any]:
    products = found.comparison
    return {
        "steps": found.steps,
        "images": found.images,
        "elements": products.elements,
        "parameters": found.parameters.elements,
        "mismatches": found.mismatches,
        "first_mismatch": products.first or found.parameters.first or None,
        "products": {
            name: wrong for name, wrong in products.by_layer.items() if not name.endswith("range")
        },
        "first_loss": found.losses[0],
        "last_loss": found.losses[-1],
    }


def _show(figures: dict[str, Any]) -> None:
    rows = [
        [name, f"{wrong:,} wrong" if wrong else "equal"]
        for name, wrong in figures["products"].items()
    ]
    footer = (
        f"{figures['steps']} steps of {figures['batch']} images, loss {figures['first_loss']} to"
        f" {figures['last_loss']}: {figures['elements']:,} elements of products and"
        f" {figures['parameters']:,} parameters compared, {figures['mismatches']} mismatches"
    )
    title = f"{figures['network']} on {figures['device']} and in the golden functions"
    console.print_table(title, {"product": "left", "result": "left"}, rows, footer)
