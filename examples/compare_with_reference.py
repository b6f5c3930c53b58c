"""Compares the golden model with TensorFlow Lite Micro (tflm) on the digits network.

Prints the number of output codes that differ; the two are equal on every image.
"""

import numpy as np
from slipstick import InferenceSession
from slipstick.examples.digits import MODEL, load_digits
from tflite_micro.python.tflite_micro import runtime

_, _, images, _ = load_digits()
images = images[:100]

with InferenceSession(MODEL, device="model") as session:
    [ours] = session.run(None, {session.get_inputs()[0].name: images})

interpreter = runtime.Interpreter.from_bytes(MODEL.read_bytes())
theirs = []
for image in images:
    interpreter.set_input(image[np.newaxis], 0)
    interpreter.invoke()
    theirs.append(interpreter.get_output(0))

different = int((ours != np.concatenate(theirs)).sum())
print(f"{len(images)} images, {ours.size} output codes, {different} differ from tflm")
raise SystemExit(different > 0)
