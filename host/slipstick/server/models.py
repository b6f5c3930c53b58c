"""The networks of a server: opened on one set of boards, found by name and version."""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from ..errors import InputError
from ..program import Program
from ..runtime.feeds import prepare
from ..session import InferenceSession
from .batcher import Batcher
from .datatypes import datatype_of
from .inference import InferenceRequest, JsonObject, OutputTensor, RequestedOutput, output_tensor
from .limits import Limits
from .refusals import Refusal, RequestError, bad_request
from .statistics import ModelStatistics

PLATFORM = "slipstick_program"
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class ModelArgument:
    """A network that is to be served.

    Parameters
    ----------
    name, version : str
        Letters, digits, and the signs ``_ . -``.
    path : Path
        Of a file as for ``InferenceSession``.
    """

    name: str
    version: str
    path: Path

    def __post_init__(self) -> None:
        for what, word in (("name", self.name), ("version", self.version)):
            if not _WORD.fullmatch(word):
                raise InputError(
                    f"a model's {what} must be of letters, digits, and _ . - within, not {word!r}:"
                    " give it as NAME=PATH or NAME@VERSION=PATH"
                )


def model_argument(text: str) -> ModelArgument:
    """Returns the network of ``PATH``, ``NAME=PATH`` or ``NAME@VERSION=PATH``."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return ModelArgument(name=Path(text).stem, version="1", path=Path(text))
    name, at, version = name.partition("@")
    return ModelArgument(name=name, version=version if at else "1", path=Path(path))


def _check_different(names: Sequence[tuple[str, str]]) -> None:
    for name, version in names:
        if names.count((name, version)) > 1:
            raise InputError(
                f"model {name} version {version} is given twice: give another name or version as"
                " NAME@VERSION=PATH"
            )


class ServedModel:
    """A network that is served.

    Parameters
    ----------
    name, version : str
    session : InferenceSession
        The caller closes it.
    limits : Limits

    Raises
    ------
    InputError
        If requests to the network cannot be independent of each other.
    """

    def __init__(self, name: str, version: str, session: InferenceSession, limits: Limits) -> None:
        self.name, self.version, self.session = name, version, session
        self.program: Program = session.program
        self.statistics = ModelStatistics()
        self._batcher = Batcher(session.submit, limits)
        if self.program.variables:
            raise InputError(
                f"model {name} keeps values from run to run and cannot be served: requests are"
                " independent of each other"
            )
        if not self.program.inputs:
            raise InputError(f"model {name} must have an input to be served")
        for each in self.program.inputs:
            shape = self.program.tensors[each].shape
            if shape[:1] != (1,):
                raise InputError(
                    f"model {name} must take one image at a time to be served, but input {each!r}"
                    f" has the shape {shape}"
                )

    @property
    def label(self) -> str:
        """Name and version, for messages."""
        return f"{self.name} version {self.version}"

    @property
    def pending(self) -> int:
        """Images that wait or are computed."""
        return self._batcher.pending

    async def infer(self, request: InferenceRequest) -> list[OutputTensor]:
        """Runs the images of a request.

        Raises
        ------
        InputError, RequestError
            If the request breaks a rule, or there is no room in the queue.
        DeviceError
            If no board answers.
        """
        wanted = self._wanted(request)
        feeds = prepare(self.program, request.inputs)
        names = tuple(dict.fromkeys(each.name for each in wanted))
        arrays = await self._batcher.infer(feeds, names)
        values = dict(zip(names, arrays, strict=True))
        return [
            output_tensor(
                each,
                values[each.name],
                self.program.tensors[each.name],
                real=request.real_outputs,
            )
            for each in wanted
        ]

    async def infer_arrays(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs images that need not be converted; returns all outputs."""
        names = self.program.outputs
        arrays = await self._batcher.infer(prepare(self.program, feeds), names)
        return dict(zip(names, arrays, strict=True))

    def _wanted(self, request: InferenceRequest) -> tuple[RequestedOutput, ...]:
        for each in request.outputs:
            if each.name not in self.program.outputs:
                known = ", ".join(self.program.outputs)
                raise bad_request(
                    f"output {each.name[:100]!r} is unknown: {self.name} gives {known}"
                )
        if request.outputs:
            return request.outputs
        binary = request.binary_outputs
        return tuple(RequestedOutput(name=n, is_binary=binary) for n in self.program.outputs)

    def tensors(self, names: Sequence[str]) -> list[JsonObject]:
        """The protocol's description of inputs or outputs."""
        return [
            {
                "name": name,
                "datatype": datatype_of(self.program.tensors[name].dtype),
                "shape": [-1, *self.program.tensors[name].shape[1:]],
            }
            for name in names
        ]


class ModelRepository:
    """Networks by name and version. Leaving its body closes what ``open`` has opened.

    Parameters
    ----------
    models : sequence of ServedModel
    """

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = tuple(models)
        self._exit = ExitStack()
        self._found: dict[str, dict[str, ServedModel]] = {}
        _check_different([(model.name, model.version) for model in models])
        for model in models:
            self._found.setdefault(model.name, {})[model.version] = model

    @classmethod
    def open(
        cls,
        arguments: Sequence[ModelArgument],
        device: str,
        target: str | None,
        limits: Limits,
        semantics: str | None = None,
    ) -> Self:
        """Opens the boards once, and each network on them.

        Parameters
        ----------
        arguments : sequence of ModelArgument
        device : str
            As for ``InferenceSession``.
        target, semantics : str, optional
            As for ``InferenceSession``.
        limits : Limits

        Raises
        ------
        SlipstickError
            As for ``InferenceSession``, or if a network cannot be served.
        """
        # before a board is opened
        _check_different([(each.name, each.version) for each in arguments])
        with ExitStack() as exit_stack:
            models: list[ServedModel] = []
            for each in arguments:
                place = models[0].session.device if models else device
                session = InferenceSession(each.path, place, target, semantics=semantics)
                exit_stack.enter_context(session)
                models.append(ServedModel(each.name, each.version, session, limits))
            repository = cls(models)
            repository._exit = exit_stack.pop_all()
        return repository

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exit.close()

    def find(self, name: str, version: str = "") -> ServedModel:
        """Returns a network; without a version the last one that was given.

        Raises
        ------
        RequestError
            If there is none.
        """
        versions = self._found.get(name)
        if versions is None:
            known = ", ".join(self._found)
            raise RequestError(
                Refusal.NOT_FOUND, f"model {name[:100]!r} is unknown: there are {known}"
            )
        if not version:
            return next(reversed(versions.values()))
        if version not in versions:
            raise RequestError(
                Refusal.NOT_FOUND,
                f"model {name} has no version {version[:100]!r}: there are {', '.join(versions)}",
            )
        return versions[version]

    def metadata(self, model: ServedModel) -> JsonObject:
        """The protocol's description of a network."""
        return {
            "name": model.name,
            "versions": list(self._found[model.name]),
            "platform": PLATFORM,
            "inputs": model.tensors(model.program.inputs),
            "outputs": model.tensors(model.program.outputs),
        }

    def index(self) -> list[JsonObject]:
        """The protocol's list of all networks."""
        return [
            {"name": each.name, "version": each.version, "state": "READY", "reason": ""}
            for each in self.models
        ]
