"""Operators that keep something from run to run, for ``tflite_writer``."""

from dataclasses import dataclass

from .tflite_operators import Field, Operator


@dataclass(frozen=True, kw_only=True)
class CallOnce(Operator):
    """No inputs, no outputs: the first run runs this subgraph."""

    code = "CALL_ONCE"
    version = 1
    table = "CallOnceOptions"
    subgraph: int = 1

    def fields(self) -> dict[str, Field]:
        return {"InitSubgraphIndex": self.subgraph}


@dataclass(frozen=True, kw_only=True)
class VarHandle(Operator):
    """The output is of type resource: the variable of this name, in every subgraph."""

    code = "VAR_HANDLE"
    version = 1
    table = "VarHandleOptions"
    name: str
    container: str = ""

    def fields(self) -> dict[str, Field]:
        return {"Container": self.container, "SharedName": self.name}


@dataclass(frozen=True, kw_only=True)
class ReadVariable(Operator):
    """Inputs: a handle."""

    code = "READ_VARIABLE"
    version = 1
    table = "ReadVariableOptions"


@dataclass(frozen=True, kw_only=True)
class AssignVariable(Operator):
    """Inputs: a handle, and its new value; no outputs."""

    code = "ASSIGN_VARIABLE"
    version = 1
    table = "AssignVariableOptions"


@dataclass(frozen=True, kw_only=True)
class SequenceLstm(Operator):
    """Inputs: x; 4 weights of it (input, forget, cell, output gate); 4 recurrent weights; 3
    peepholes; 4 biases; projection and its bias; output state and cell state, both variables; 4
    normalisations of layers. Activation 4 is TANH."""

    code = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    version = 3
    table = "UnidirectionalSequenceLSTMOptions"
    activation: int = 4
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    time_major: bool = False

    def fields(self) -> dict[str, Field]:
        return {
            "FusedActivationFunction": self.activation,
            "CellClip": self.cell_clip,
            "ProjClip": self.projection_clip,
            "TimeMajor": self.time_major,
        }
