"""Compiles the digits network, saves the program, and runs the saved file.

Prints the layers with the place where they run, and writes digits.slip to the working directory.
"""

from pathlib import Path

import slipstick
from slipstick.examples.digits import MODEL, load_digits

program = slipstick.compile(MODEL, target="1x8x8")
for layer in program.layers:
    print(f"{layer.name:<20} {layer.operator:<18} {layer.where:<7} {layer.macs:>8,} MACs")

path = Path("digits.slip")
program.save(path)
print(f"{path}: {path.stat().st_size:,} bytes for hardware {program.fingerprint}")

_, _, images, labels = load_digits()
with slipstick.InferenceSession(path, device="model") as session:
    [scores] = session.run(None, {session.get_inputs()[0].name: images[0]})
print(f"the saved program reads a {scores.argmax()}, the label is {labels[0]}")

try:
    slipstick.InferenceSession(path, device="model", target="1x16x16")
except slipstick.ProgramError as error:
    print(f"other hardware is refused: {error}")
