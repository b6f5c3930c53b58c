"""A network's layers over time, as the compiler predicts them, for the page."""

from ..program import Program
from .inference import JsonObject


def layer_timeline(program: Program) -> JsonObject:
    """Returns each layer's cycles of one image, and how much of the array it uses.

    Parameters
    ----------
    program : Program

    Returns
    -------
    dict
        Cycles are the compiler's prediction. ``utilisation``: multiply-accumulates over those that
        the array could do in the time; None for a layer that has none, or runs on the host.
    """
    hardware = program.hardware
    peak, batch = hardware.macs_per_cycle, program.batch
    layers, begin = [], 0
    for layer in program.layers:
        cycles = layer.predicted_cycles
        used = layer.macs / (cycles * peak) if layer.macs and cycles else None
        layers.append(
            {
                "name": layer.name,
                "operator": layer.operator,
                "where": layer.where,
                "why": layer.why,
                "macs": layer.macs,
                "begin": begin,
                "cycles": cycles,
                "utilisation": used if layer.where == "device" else None,
            }
        )
        begin += cycles
    total = program.predicted_cycles
    return {
        "network": program.name,
        "array": hardware.shape,
        "clock_hz": hardware.clock_hz,
        "macs_per_cycle": peak,
        "batch": batch,
        "cycles": total,
        "milliseconds": total / hardware.clock_hz * 1e3,
        "macs": program.macs,
        "utilisation": program.macs / (total * peak) if total else None,
        "layers": layers,
    }
