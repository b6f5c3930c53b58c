"""Runs a network that keeps a value from run to run, and resets it.

The network is made here: a variable holds the sum of all inputs, in int8 codes. Prints the sum
after each run, and after ``reset_state``.
"""

from pathlib import Path

import numpy as np
from slipstick import InferenceSession
from slipstick.writers.tflite import TfliteWriter
from slipstick.writers.tflite_operators import Add
from slipstick.writers.tflite_state import AssignVariable, CallOnce, ReadVariable, VarHandle

SHAPE = (1, 1, 1, 4)
main = TfliteWriter()
first = main.subgraph()
main.add(CallOnce(subgraph=1), [], [])
for graph in (main, first):
    graph.tensor("handle", (), "resource")
    graph.add(VarHandle(name="sum"), [], ["handle"])
first.tensor("zero", SHAPE, scale=1.0, data=np.zeros(SHAPE, np.int8))
first.add(AssignVariable(), ["handle", "zero"], [])
for name in ("x", "old", "new"):
    main.tensor(name, SHAPE, scale=1.0)
main.add(ReadVariable(), ["handle"], ["old"])
main.add(Add(), ["old", "x"], ["new"])
main.add(AssignVariable(), ["handle", "new"], [])
Path("sum.tflite").write_bytes(main.to_bytes(["x"], ["new"]))

step = np.array([1, 2, 3, 4], np.int8).reshape(SHAPE)
with InferenceSession("sum.tflite", device="model") as session:
    print(f"{session.program.state_bytes} bytes are kept from run to run")
    for run in range(3):
        [total] = session.run(None, {"x": step})
        print(f"run {run + 1}: {total.ravel().tolist()}")
    session.reset_state()
    [total] = session.run(None, {"x": step})
    print(f"after the reset: {total.ravel().tolist()}")
