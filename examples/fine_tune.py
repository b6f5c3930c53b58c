"""Adapts the embedded network to inverted digits, in integers of 8 bits.

It learns from 800 labelled images in a loop of its own, as with PyTorch. Prints loss and accuracy
after each epoch, and the accuracy of the new file.
"""

import numpy as np
from slipstick import InferenceSession
from slipstick.examples.digits import MODEL, load_digits
from slipstick.training import Loader, TrainingSession


def invert(images: np.ndarray) -> np.ndarray:
    """White digits become black ones: codes are -128 for black to 112 for white."""
    return (-16 - images.astype(int)).astype(np.int8)


x, y, test_x, test_y = load_digits()
# device="udp:" multiplies on a board with training instead, and gives the same bits
with TrainingSession(MODEL, device="model") as session:
    learned = session.prepare(invert(x[:800]), y[:800])
    tested = session.prepare(invert(test_x), test_y)
    loader = Loader(learned, batch=16, seed=0)
    print(f"before: {session.evaluate(tested.images, tested.labels).accuracy:.1%} are right")
    for epoch in range(8):
        losses = []
        for images, labels in loader:
            losses.append(session.step(images, labels, rate_shift=5 if epoch < 5 else 6))
        score = session.evaluate(tested.images, tested.labels)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {score.accuracy:.1%} are right")
    session.save("inverted.tflite")

with InferenceSession("inverted.tflite", device="model") as network:
    [scores] = network.run(None, {network.get_inputs()[0].name: invert(test_x)})
accuracy = (scores.reshape(len(test_y), -1).argmax(axis=1) == test_y).mean()
print(f"the new file: {accuracy:.1%} are right")
