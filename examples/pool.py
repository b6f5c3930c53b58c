"""Runs one network on a pool of two boards; the second one is half as fast as the first.

The boards are emulated: each gives the golden model's results after the time that a board would
take. With boards on your desk use names such as ``serial:/dev/ttyUSB0`` or ``udp:``. Prints how
many images each board has computed, and checks the results against those of one device.
"""

import time

import numpy as np
from slipstick import InferenceSession
from slipstick.examples.digits import MODEL, load_digits

BOARDS = ["emulated:ulx3s-25f@rmii/10", "emulated:ulx3s-25f@rmii/20"]

_, _, images, _ = load_digits()
with InferenceSession(MODEL, "model", "ulx3s-25f") as session:
    name = session.get_inputs()[0].name
    [expected] = session.run(None, {name: images})

with InferenceSession(MODEL, BOARDS) as session:
    session.run(None, {name: images})  # emulated boards compute an image once, and remember it
    # a batch is divided among the boards
    start = time.perf_counter()
    [found] = session.run(None, {name: images})
    seconds = time.perf_counter() - start
    # single images go to whichever board is free
    futures = [session.submit({name: image}) for image in images]
    singles = np.concatenate([future.result()[0] for future in futures])
    for board in session.boards():
        print(f"{board.name}: {board.images} images, {board.rate:,.0f} per second while it works")

print(f"both together: {len(images) / seconds:,.0f} images per second")
print(f"results equal: {np.array_equal(found, expected) and np.array_equal(singles, expected)}")
