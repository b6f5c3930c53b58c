"""``make demo``: handwritten digits, read by the compiled RTL, and a picture of it."""

import time
from pathlib import Path

import numpy as np

from .. import console
from ..errors import DeviceError
from ..failures import exit_status
from ..loading import compile_file
from ..plots.figures import draw_demo
from ..profile.recorder import Recorder
from ..program import Program
from ..runtime.executor import Execution
from ..runtime.feeds import prepare
from ..session import InferenceSession
from ..targets import DEFAULT_TARGET
from .digits import MODEL, load_digits

PICTURE = Path("build") / "demo.png"
SHOWN = 40
COLUMNS = 5


def classes(program: Program, device: str, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Output codes and classes of all images on a device."""
    with console.waiting(f"opening {device}"):
        session = InferenceSession(program, device)
    with session, console.progress(f"running on {device}", len(images)) as advance:
        start = time.perf_counter()
        (codes,) = session.run_batch(None, {program.inputs[0]: images}, advance)
        seconds = time.perf_counter() - start
    console.print_line(f"  {device}: {len(images)} images in {seconds:.1f} s")
    return codes, codes.reshape(len(images), -1).argmax(axis=1)


def chosen(guesses: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """Indices of the images to show: all the wrong ones that fit, then the first right ones."""
    wrong, right = np.flatnonzero(guesses != truths), np.flatnonzero(guesses == truths)
    return np.sort(np.concatenate([wrong, right])[:SHOWN])


def print_guesses(indices: np.ndarray, guesses: np.ndarray, truths: np.ndarray) -> None:
    """A screenful of guesses beside the truth."""
    console.print_line("\nimage: guess, truth on the compiled RTL (all the wrong ones among them)")
    cells = [
        f"{index:>4}: {guesses[index]}, {truths[index]}"
        + ("  wrong" if guesses[index] != truths[index] else "")
        for index in indices
    ]
    for start in range(0, len(cells), COLUMNS):
        console.print_line("".join(f"{cell:<20}" for cell in cells[start : start + COLUMNS]))


def demo() -> None:
    """Compiles the embedded network, runs all held-out digits, prints and draws what it saw."""
    program = compile_file(MODEL, DEFAULT_TARGET)
    hardware = program.hardware
    _, _, images, truths = load_digits()
    console.print_line(
        f"Handwritten digits, {len(images)} images that the network was not trained on, for"
        f" {DEFAULT_TARGET}: {hardware.macs_per_cycle} multipliers ({hardware.shape})"
    )
    golden, _ = classes(program, "model", images)
    simulated, guesses = classes(program, "sim", images)
    equal = int((golden == simulated).reshape(len(images), -1).all(axis=1).sum())
    with InferenceSession(program, "sim") as session:
        recorder = Recorder(Execution(program, session.device))
        recorder.infer(prepare(program, {program.inputs[0]: images[:1]}))
        layers = recorder.layers()
    shown = chosen(guesses, truths)
    print_guesses(shown, guesses, truths)
    share = program.macs / (recorder.cycles * hardware.macs_per_cycle)
    right = int((guesses == truths).sum())
    wrong_shown = int((guesses[shown] != truths[shown]).sum())
    facts = {
        f"accuracy on {len(images)} held-out images": f"{right / len(images):.1%}",
        "of them equal to the golden model": f"{equal}",
        "clock cycles per inference": f"{recorder.cycles:,}",
        "of peak MACs": f"{share:.1%}",
    }
    shares = {
        line.layer.name: value
        for line in layers
        if (value := line.utilisation(hardware.macs_per_cycle)) is not None
    }
    draw_demo(
        PICTURE,
        images[shown],
        guesses[shown],
        truths[shown],
        [span for line in layers for span in line.spans],
        utilisation=shares,
        title=f"Digits on the RTL of {DEFAULT_TARGET}",
        facts=facts,
        caption=f"{len(shown)} of {len(images)} held-out images; red: {wrong_shown} of all"
        f" {len(images) - right} errors",
    )
    console.print_line(
        f"\naccuracy            {right} of {len(images)}, {right / len(images):.2%}\n"
        f"RTL = golden model  {equal} of {len(images)} images, every output code\n"
        f"cycles per image    {recorder.cycles:,} ({program.predicted_cycles:,} predicted),"
        f" {hardware.clock_hz / recorder.cycles:,.0f} inferences per second at"
        f" {hardware.clock_hz / 1e6:g} MHz\n"
        f"share of peak       {share:.1%} of {hardware.macs_per_cycle} MACs per cycle\n"
        f"picture             {PICTURE}"
    )
    if equal != len(images):
        raise DeviceError(
            f"the compiled RTL must equal the golden model on all {len(images)} images,"
            f" but it does on {equal}"
        )


if __name__ == "__main__":
    raise SystemExit(exit_status(demo))
