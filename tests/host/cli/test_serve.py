"""``slipstick serve``: how models are named, and what it refuses before it opens a port."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import slipstick as package
from slipstick.errors import InputError
from slipstick.server.limits import Limits
from slipstick.server.models import ModelArgument, ModelRepository, ServedModel, model_argument

DIGITS = Path(package.__file__).parent / "assets" / "digits.tflite"
DEVICE = ("--device", "model:1x16x16")


def check(result: tuple[int, str, str], match: str) -> None:
    status, out, err = result
    assert status == 2 and not out
    assert match in " ".join(err.split()) and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "name", "version", "path"),
    [
        ("nets/a.tflite", "a", "1", "nets/a.tflite"),
        ("b=nets/a.tflite", "b", "1", "nets/a.tflite"),
        ("b@2.1=nets/a.tflite", "b", "2.1", "nets/a.tflite"),
        ("b=nets/x=y.tflite", "b", "1", "nets/x=y.tflite"),
    ],
)
def test_models(text: str, name: str, version: str, path: str) -> None:
    assert model_argument(text) == ModelArgument(name=name, version=version, path=Path(path))


def test_a_file_with_the_sign_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a=b.tflite"
    path.touch()
    with pytest.raises(InputError, match=r"model's name must be .* not 'a=b'"):
        model_argument(str(path))
    assert model_argument(f"c={path}").path == path


@pytest.mark.parametrize("text", ["=x.tflite", "a b=x", "@1=x", "a@=x", "a@v/1=x", "", "é=x"])
def test_bad_names(slipstick, text: str) -> None:
    check(slipstick("serve", text, *DEVICE), "must be of letters, digits")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 opens the server to other machines"),
        (["--port", 70000], "--port must be within 0..65535, not 70000"),
        (["--grpc-port", -1], "--grpc-port must be within 0..65535, not -1"),
        (["--queue", 0], "--queue must be within 1..1048576, not 0"),
        (["--max-body", 10], "--max-body must be within 1024.."),
        (["--max-batch-delay", -1], "--max-batch-delay must be within 0..10000, not -1"),
        (["--max-batch-delay", "nan"], "--max-batch-delay must be within 0..10000, not nan"),
        (["--token", "nowhere"], "--token nowhere cannot be read: No such file"),
        (["--device", "model:nothing"], "nothing"),
        (["--device", "pool:"], "device"),
    ],
)
def test_bad_options(
    slipstick, arguments: list, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLIPSTICK_TOKEN", raising=False)
    check(slipstick("serve", DIGITS, *DEVICE, *arguments), match)


def test_bad_models(slipstick) -> None:
    check(slipstick("serve", "nowhere.tflite", *DEVICE), "model nowhere.tflite must be a file")
    twice = (f"a={DIGITS}", f"a={DIGITS}")
    check(slipstick("serve", *twice, *DEVICE), "model a version 1 is given twice")


@pytest.mark.parametrize(
    ("inputs", "variables", "match"),
    [
        ({"x": (1, 8)}, ("state",), "keeps values from run to run"),
        ({"x": (1, 8), "y": (4, 8)}, (), r"input 'y' has the shape \(4, 8\)"),
        ({"x": ()}, (), r"input 'x' has the shape \(\)"),
        ({}, (), "must have an input"),
    ],
)
def test_networks_that_cannot_be_served(inputs: dict, variables: tuple, match: str) -> None:
    tensors = {name: SimpleNamespace(shape=shape) for name, shape in inputs.items()}
    program = SimpleNamespace(inputs=tuple(inputs), tensors=tensors, variables=variables)
    session: Any = SimpleNamespace(program=program, submit=None)
    with pytest.raises(InputError, match=match):
        ServedModel("a", "1", session, Limits())


def test_networks_share_their_boards() -> None:
    arguments = [ModelArgument(name=name, version="1", path=DIGITS) for name in ("a", "b")]
    device = "pool:model:1x16x16,model:1x16x16"
    with ModelRepository.open(arguments, device, None, Limits()) as repository:
        first, second = repository.models
        assert first.session.device is second.session.device
        assert len(first.session.boards()) == 2
    with pytest.raises(Exception, match="closed"):
        first.session.boards()
