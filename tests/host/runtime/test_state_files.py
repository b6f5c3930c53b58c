"""Files whose variables contradict themselves: one sentence, which names the variable."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stateful_networks as networks
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.errors import ModelError, ProgramError, SlipstickError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Variable
from slipstick.program import Program
from slipstick.program.slip_file import decode, encode
from slipstick.program.steps import UploadStep
from slipstick.session import InferenceSession
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_moves as moves
from slipstick.writers import tflite_operators as basic
from slipstick.writers import tflite_state as state
from stateful_networks import StreamingWriter
from tflm_networks import SMALL, Described

X = np.array([[3, 4, 5, 6], [13, 14, 15, 16], [23, 24, 25, 26]], np.int8)
Q = 0.5, 3


def plain(net: StreamingWriter) -> bytes:
    return net.main.to_bytes(["x"], ["y"])


def unset() -> StreamingWriter:
    """A variable that nothing sets before it is read."""
    net = StreamingWriter(np.random.default_rng(1))
    net.set_first("other", X[:1], Q)
    net.activation("x", (1, 4), Q)
    handle, old = net.handle("line"), net.activation("old", (1, 4), Q)
    net.main.add(state.ReadVariable(), [handle], [old])
    net.activation("y", (1, 4), Q)
    net.main.add(basic.Add(), ["x", old], ["y"])
    return net


def called(number: int) -> bytes:
    net = networks.delay()
    net.main.add(state.CallOnce(subgraph=number), [], [])
    return plain(net)


def within(operator: basic.Operator, inputs: list[str], outputs: list[str]) -> bytes:
    """Another operator in the subgraph that is called."""
    net = networks.delay()
    net.activation("unused", (1, 4), Q)
    for name in {*inputs, *outputs} - {"line_handle", "line_first"}:
        net.first.tensor(name, (1, 4), scale=Q[0], zero_point=Q[1])
    net.first.add(operator, inputs, outputs)
    return plain(net)


def assigned(shape: tuple[int, ...] = (1, 4), *, constant: bool = False) -> bytes:
    """Another tensor assigned at the end."""
    net = networks.delay()
    more: Described = {"data": np.zeros(shape, np.int8)} if constant else {}
    net.main.tensor("more", shape, scale=Q[0], zero_point=Q[1], **more)
    if not constant:
        net.main.add(basic.Reshape(shape=shape), ["y"], ["more"])
    net.main.add(state.AssignVariable(), ["line_handle", "more"], [])
    return plain(net)


def late() -> bytes:
    """CALL_ONCE behind the first reading."""
    net = networks.delay()
    net.main.add(state.CallOnce(subgraph=1), [], [])
    return plain(net)


def handled(dtype: str) -> bytes:
    net = networks.delay()
    net.main.tensor("odd", (1,), dtype)
    net.main.add(state.VarHandle(name="odd"), [], ["odd"])
    return plain(net)


def contained() -> bytes:
    net = networks.delay()
    net.main.tensor("odd", (), "resource")
    net.main.add(state.VarHandle(name="line", container="c"), [], ["odd"])
    return plain(net)


def uncalled() -> bytes:
    net = networks.delay()
    net.main.subgraph()
    return plain(net)


def unmade(operator: basic.Operator, inputs: list[str], outputs: list[str]) -> bytes:
    """An operator on tensors that nothing makes."""
    net = networks.delay()
    net.main.tensor("ghost", (1, 4), scale=Q[0], zero_point=Q[1])
    net.main.tensor("free", (1, 4), scale=Q[0], zero_point=Q[1])
    net.main.add(operator, inputs, outputs)
    return plain(net)


CASES: list[tuple[bytes, type[SlipstickError], str]] = [
    (
        plain(networks.delay({"shape": (1, 2)})),
        ModelError,
        r"READ_VARIABLE .*variable 'line' must stay int8 of shape \(1, 4\), not int8 of .*\(1, 2\)",
    ),
    (
        plain(networks.delay({"dtype": "uint8"})),
        ModelError,
        r"variable 'line' must stay int8 of shape \(1, 4\), not uint8",
    ),
    (
        plain(networks.delay({"scale": 0.25})),
        ModelError,
        r"must stay of scale 0\.5 and zero point 3, not 0\.25 and 3",
    ),
    (
        plain(networks.delay({"zero_point": 4})),
        ModelError,
        r"must stay of scale 0\.5 and zero point 3, not 0\.5 and 4",
    ),
    (assigned((1, 2, 2)), ModelError, r"ASSIGN_VARIABLE .* must stay int8 of shape \(1, 4\), not"),
    (assigned(constant=True), UnsupportedError, r"'line' must be assigned what is computed, and"),
    (plain(unset()), ModelError, r"variable 'line' is read before it is assigned"),
    (called(7), ModelError, r"CALL_ONCE .*: the subgraph must be one of 2, not subgraph 7"),
    (called(-1), ModelError, r"the subgraph must be one of 2, not subgraph -1"),
    (called(0), ModelError, r"the subgraph must be another, not 0, which calls it"),
    (
        within(state.CallOnce(subgraph=1), [], []),
        ModelError,
        r"subgraph 1: CALL_ONCE .*a subgraph that is called once must not call another",
    ),
    (
        within(basic.Relu(), ["line_first"], ["made"]),
        UnsupportedError,
        r"subgraph 1: RELU .*a subgraph that is called once must only assign constants",
    ),
    (
        within(state.AssignVariable(), ["line_handle", "made"], []),
        UnsupportedError,
        r"variable 'line' must be assigned a constant, and 'made' is none",
    ),
    (
        within(state.AssignVariable(), ["line_first", "line_first"], []),
        ModelError,
        r"input 0 must be what a VAR_HANDLE before it gave",
    ),
    (
        within(state.AssignVariable(), ["line_handle"], []),
        ModelError,
        r"inputs and outputs must be 2 and 0, all there, not 1 and 0",
    ),
    (late(), UnsupportedError, r"must be assigned before the network reads or assigns it"),
    (handled("int32"), ModelError, r"VAR_HANDLE .*: the output must be a resource, not int32"),
    (contained(), UnsupportedError, r"variable 'line' must be in the container '', not 'c'"),
    (
        unmade(state.AssignVariable(), ["line_handle", "ghost"], []),
        ModelError,
        r"input 'ghost' is read before it is written",
    ),
    (
        unmade(state.ReadVariable(), ["x"], ["free"]),
        ModelError,
        r"READ_VARIABLE .*: input 0 must be what a VAR_HANDLE before it gave",
    ),
    (
        unmade(state.ReadVariable(), ["line_handle"], ["y"]),
        ModelError,
        r"the output must be written once, and no constant",
    ),
    (
        unmade(basic.Relu(), ["line_handle"], ["free"]),
        UnsupportedError,
        r"'line_handle': type must be one of .*, not resource",
    ),
]


@pytest.mark.parametrize(("data", "kind", "message"), CASES)
def test_refusals(data: bytes, kind: type[SlipstickError], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        load_tflite_bytes(data, "net")
    assert str(raised.value).startswith("net") and "\n" not in str(raised.value)


def read_again() -> bytes:
    """Two assignments, and a reading between them; the last one counts."""
    net = networks.delay()
    handle = net.handle("line_again")
    net.activation("between", (1, 4), Q)
    net.activation("sum", (1, 4), Q)
    net.main.add(state.ReadVariable(), ["line_handle"], ["between"])
    net.main.add(basic.Add(), ["y", "between"], ["sum"])
    net.set_first("line_again", X[2:], Q)
    net.main.add(state.AssignVariable(), [handle, "between"], [])
    net.main.add(state.AssignVariable(), ["line_handle", "sum"], [])
    return net.main.to_bytes(["x"], ["sum"])


def constant_variable() -> bytes:
    """It is read, and never assigned."""
    net = StreamingWriter(np.random.default_rng(1))
    net.set_first("line", X[1:2], Q)
    net.activation("x", (1, 4), Q)
    old = net.activation("old", (1, 4), Q)
    net.main.add(state.ReadVariable(), [net.handle("line")], [old])
    net.activation("y", (1, 4), Q)
    net.main.add(basic.Add(), ["x", old], ["y"])
    return plain(net)


def shifted() -> bytes:
    """One variable's old value becomes the other's; it is an output of the network, too."""
    net = networks.delay()
    net.set_first("older", X[2:], Q)
    handle, oldest = net.handle("older"), net.activation("oldest", (1, 4), Q)
    net.main.add(state.ReadVariable(), [handle], [oldest])
    net.main.add(state.AssignVariable(), [handle, "old"], [])
    net.activation("both", (1, 4), Q)
    net.main.add(basic.Add(), ["y", oldest], ["both"])
    return net.main.to_bytes(["x"], ["both", "old"])


def rows() -> bytes:
    """A variable whose first axis is no batch."""
    first = np.arange(12, dtype=np.int8).reshape(3, 4)
    net = StreamingWriter(np.random.default_rng(1))
    net.set_first("line", first, Q)
    net.activation("x", (1, 4), Q)
    old, new = net.activation("old", (3, 4), Q), net.activation("new", (3, 4), Q)
    handle = net.handle("line")
    net.main.add(state.ReadVariable(), [handle], [old])
    newest = net.activation("newest", (2, 4), Q)
    spans = [net.integers(f"span{n}", values) for n, values in enumerate(([1, 0], [2, 4]))]
    net.main.add(moves.Slice(), [old, *spans], [newest])
    net.main.add(moves.Concatenation(axis=0), [newest, "x"], [new])
    net.main.add(state.AssignVariable(), [handle, new], [])
    net.activation("y", (1, 12), Q)
    shape = net.integers("shape", (1, 12))
    net.main.add(basic.Reshape(shape=(1, 12)), [new, shape], ["y"])
    return plain(net)


def bare() -> bytes:
    """The constant that is assigned first has no scale: its bytes are the variable's codes."""
    net = networks.delay()
    handle = net.handle("bare")
    first = net.first.tensor("bare_handle", (), "resource")
    net.first.add(state.VarHandle(name="bare"), [], [first])
    net.first.tensor("bare_first", (1, 4), data=X[2:])
    net.first.add(state.AssignVariable(), [first, "bare_first"], [])
    old, total = net.activation("bare_old", (1, 4), Q), net.activation("total", (1, 4), Q)
    net.main.add(state.ReadVariable(), [handle], [old])
    net.main.add(basic.Add(), ["y", old], [total])
    net.main.add(state.AssignVariable(), [handle, total], [])
    return net.main.to_bytes(["x"], [total])


@pytest.mark.parametrize("write", [bare, read_again, constant_variable, shifted, rows])
def test_odd_orders_are_tflms(write: Callable[[], bytes]) -> None:
    data = write()
    wanted = TflmReference(data).run(*[X])
    graph = load_tflite_bytes(data)
    values = kernels.run_graph(graph, [X])
    with InferenceSession(compile_graph(graph, SMALL), open_device("model", SMALL)) as session:
        actual = session.run(None, {"x": X})
    for name, expected, value in zip(graph.outputs, wanted, actual, strict=True):
        np.testing.assert_array_equal(values[name], expected, name)
        np.testing.assert_array_equal(value, expected, name)


def test_variable_that_is_only_assigned_is_no_state() -> None:
    net = networks.delay()
    net.main.add(state.AssignVariable(), [net.handle("unread"), "y"], [])
    graph = load_tflite_bytes(plain(net))
    assert [variable.name for variable in graph.variables] == ["line"]


def program() -> Program:
    return compile_graph(load_tflite_bytes(plain(networks.delay())), SMALL)


ZEROS = np.zeros((1, 4), np.int8)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ([Variable("v", "nothing", "x", ZEROS)], "variable 'v': its tensors are not described"),
        ([Variable("v", "old", "nothing", ZEROS)], "variable 'v': its tensors are not described"),
        ([Variable("v", "x", "y", ZEROS)], "'x' must be its own, and nothing else's"),
        ([Variable(name, "old", "x", ZEROS) for name in "ab"], "variable 'b': 'old' must be its"),
        (
            [Variable("v", "old", "x", ZEROS.astype(np.uint8))],
            r"must be of one type and shape, not int8 of shape \(1, 4\), uint8 of shape \(1, 4\)",
        ),
        ([Variable("v", "old", "x", ZEROS[:, :2])], "must be of one type and shape"),
    ],
)
def test_programs_check_their_variables(variables: list[Variable], message: str) -> None:
    good = program()
    with pytest.raises(ProgramError, match=message):
        dataclasses.replace(good, variables=tuple(variables))


def test_programs_check_what_stays_on_the_device() -> None:
    data = networks.wake_word(np.random.default_rng(1))
    good = compile_graph(load_tflite_bytes(data), SMALL)
    source = good.resident[0]
    result = next(each.result for each in good.variables if each.source == source)
    place = good.tensors[result].placement
    assert place is not None
    other = dataclasses.replace(place, address=place.address + 64)
    moved = {**good.tensors, result: dataclasses.replace(good.tensors[result], placement=other)}
    first = next(each.source for each in good.variables if each.source not in good.resident)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"resident": ("nobody",)}, "resident 'nobody' must be a variable's source"),
        ({"resident": (first,)}, f"resident '{first}' must keep its place"),
        ({"tensors": moved}, f"resident '{source}' must keep its place"),
        (
            {"steps": (UploadStep(source), *good.steps)},
            f"resident '{source}' must not be moved by a step",
        ),
    ]
    for changes, message in cases:
        with pytest.raises(ProgramError, match=message):
            dataclasses.replace(good, **changes)
    assert decode(encode(good)).resident == good.resident


def test_program_files_of_other_versions_are_refused_with_advice() -> None:
    data = bytearray(encode(program()))
    data[4] = 2
    with pytest.raises(ProgramError, match="must be of version 7, not 2: compile its network anew"):
        decode(bytes(data))


def test_a_subgraph_that_nothing_calls_is_not_read() -> None:
    """tflm reads past it, too."""
    data = uncalled()
    assert load_tflite_bytes(data).variables
    TflmReference(data)
