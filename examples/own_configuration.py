"""Describes hardware of one's own with a Configuration and runs the digits network on it.

Prints shape, fingerprint, predicted cycles and accuracy of two configurations, and the message for
one that breaks a rule.
"""

from dataclasses import replace

import slipstick
from slipstick.examples.digits import MODEL, load_digits
from slipstick_rtl.config import Configuration

_, _, images, labels = load_digits()
wide = Configuration(
    rows=8,  # reduction elements (kernel taps x channels) per cycle
    columns=16,  # output channels computed together
    lanes=8,  # results per cycle of the post-processor
    weight_rows=2,
    activation_bytes=1 << 12,
    weight_bytes=1 << 14,
)
for configuration in (wide, replace(wide, rows=16, columns=8, weight_rows=4)):
    program = slipstick.compile(MODEL, configuration)
    with slipstick.InferenceSession(program, device="model") as session:
        [scores] = session.run(None, {program.inputs[0]: images})
    right = (scores.reshape(len(images), -1).argmax(axis=1) == labels).mean()
    print(
        f"{configuration.shape}, fingerprint {configuration.fingerprint}:"
        f" {program.predicted_cycles:,} cycles predicted, accuracy {right:.1%}"
    )

try:
    replace(wide, columns=12)
except ValueError as error:
    print(f"refused: {error}")
