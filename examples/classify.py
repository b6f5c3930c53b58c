"""Classifies handwritten digits with the embedded network on the golden model.

Prints the guess and the label of the first eight held-out images, then the accuracy on all 539.
"""

from slipstick import InferenceSession
from slipstick.examples.digits import MODEL, load_digits

_, _, images, labels = load_digits()
with InferenceSession(MODEL, device="model") as session:
    name = session.get_inputs()[0].name
    [scores] = session.run(None, {name: images})

guesses = scores.reshape(len(images), -1).argmax(axis=1)
for guess, label in zip(guesses[:8], labels, strict=False):
    print(f"guess {guess}, label {label}")
right = int((guesses == labels).sum())
print(f"accuracy: {right} of {len(labels)} ({right / len(labels):.1%})")
