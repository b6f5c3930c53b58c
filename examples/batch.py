"""Runs a batch on the golden model, which works on several images at a time.

Prints the images per second of single calls and of one batch, and checks that results are equal.
"""

import time

import numpy as np
from slipstick import InferenceSession
from slipstick.examples.digits import MODEL, load_digits

_, _, images, _ = load_digits()
with InferenceSession(MODEL, device="model") as session:
    name = session.get_inputs()[0].name
    session.run(None, {name: images[0]})  # the first call prepares the golden model

    start = time.perf_counter()
    single = np.concatenate([session.run(None, {name: image})[0] for image in images])
    between = time.perf_counter()
    [batch] = session.run(None, {name: images})
    end = time.perf_counter()

print(f"one by one: {len(images) / (between - start):,.0f} images per second")
print(f"one batch:  {len(images) / (end - between):,.0f} images per second")
print(f"results equal: {np.array_equal(single, batch)}")
