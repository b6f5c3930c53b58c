"""The messages of the Open Inference Protocol V2 over gRPC, made from a table of their fields."""

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"

_TABLE = """
ServerLiveRequest:
ServerLiveResponse: 1 bool live
ServerReadyRequest:
ServerReadyResponse: 1 bool ready
ModelReadyRequest: 1 string name, 2 string version
ModelReadyResponse: 1 bool ready
ServerMetadataRequest:
ServerMetadataResponse: 1 string name, 2 string version, 3 string* extensions
ModelMetadataRequest: 1 string name, 2 string version
ModelMetadataResponse: 1 string name, 2 string* versions, 3 string platform, \
4 ModelMetadataResponse.TensorMetadata* inputs, 5 ModelMetadataResponse.TensorMetadata* outputs
ModelMetadataResponse.TensorMetadata: 1 string name, 2 string datatype, 3 int64* shape
RepositoryIndexRequest: 1 string repository_name, 2 bool ready
RepositoryIndexResponse: 1 RepositoryIndexResponse.ModelIndex* models
RepositoryIndexResponse.ModelIndex: 1 string name, 2 string version, 3 string state, \
4 string reason
InferParameter: 1 bool? bool_param, 2 int64? int64_param, 3 string? string_param, \
4 double? double_param, 5 uint64? uint64_param
InferTensorContents: 1 bool* bool_contents, 2 int32* int_contents, 3 int64* int64_contents, \
4 uint32* uint_contents, 5 uint64* uint64_contents, 6 float* fp32_contents, \
7 double* fp64_contents, 8 bytes* bytes_contents
ModelInferRequest: 1 string model_name, 2 string model_version, 3 string id, \
4 InferParameter% parameters, 5 ModelInferRequest.InferInputTensor* inputs, \
6 ModelInferRequest.InferRequestedOutputTensor* outputs, 7 bytes* raw_input_contents
ModelInferRequest.InferInputTensor: 1 string name, 2 string datatype, 3 int64* shape, \
4 InferParameter% parameters, 5 InferTensorContents contents
ModelInferRequest.InferRequestedOutputTensor: 1 string name, 2 InferParameter% parameters
ModelInferResponse: 1 string model_name, 2 string model_version, 3 string id, \
4 InferParameter% parameters, 5 ModelInferResponse.InferOutputTensor* outputs, \
6 bytes* raw_output_contents
ModelInferResponse.InferOutputTensor: 1 string name, 2 string datatype, 3 int64* shape, \
4 InferParameter% parameters, 5 InferTensorContents contents
"""
"""A message per line: number, type and name of each field. ``*``: repeated; ``?``: one of the
message's choice; ``%``: a map from text. A message within another one follows its outer one."""

_FIELD = re.compile(r"(\d+) ([\w.]+)([*?%]?) (\w+)")
_CHOICE = "parameter_choice"
Descriptor = descriptor_pb2.DescriptorProto
Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(Field, f"TYPE_{name.upper()}")
    for name in (
        "bool",
        "string",
        "bytes",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "float",
        "double",
    )
}


def _set_type(field: Field, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


def _add_map(message: Descriptor, path: str, field: Field, kind: str) -> None:
    """A map is a repeated message of key and value."""
    words = [word.capitalize() for word in field.name.split("_")]
    entry = message.nested_type.add(name=f"{''.join(words)}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    value = entry.field.add(name="value", number=2, label=Field.LABEL_OPTIONAL)
    _set_type(value, kind)
    field.label = Field.LABEL_REPEATED
    field.type = Field.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{path}.{entry.name}"


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="slipstick/open_inference.proto", package=PACKAGE, syntax="proto3"
    )
    made: dict[str, Descriptor] = {}
    for line in filter(None, _TABLE.splitlines()):
        path, _, fields = line.partition(":")
        outer, _, name = path.rpartition(".")
        message = made[outer].nested_type.add() if outer else file.message_type.add()
        message.name = name
        made[path] = message
        for number, kind, sign, field_name in _FIELD.findall(fields):
            field = message.field.add(name=field_name, number=int(number))
            field.label = Field.LABEL_REPEATED if sign == "*" else Field.LABEL_OPTIONAL
            if sign == "%":
                _add_map(message, path, field, kind)
                continue
            _set_type(field, kind)
            if sign == "?":
                if not message.oneof_decl:
                    message.oneof_decl.add(name=_CHOICE)
                field.oneof_index = 0
    return file


# a pool of its own: another package of the process may have the same names
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def message_class(name: str) -> Any:
    """Returns the class of a message, by its name without the package."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
