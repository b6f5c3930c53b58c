"""The embedded digits network: its data, its file, its figures."""

import hashlib
import json

import numpy as np
import pytest
from slipstick.errors import InputError
from slipstick.examples import digits
from tflite_micro.python.tflite_micro import runtime

HELD_OUT_DIGEST = "89a384fc03cd5b83e1bedb9b5249edaf92922a0f08f496f3e63156c7e8a3a403"


def test_split_is_stratified_and_complete() -> None:
    labels = np.repeat(np.arange(10), np.arange(100, 200, 10))
    train, held_out = digits.split_indices(labels)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held_out])), np.arange(1450))
    for label in range(10):
        share = np.mean(labels[held_out] == label) * len(held_out) / np.sum(labels == label)
        assert abs(share - digits.HELD_OUT_SHARE) < 0.005
    assert not np.array_equal(held_out, digits.split_indices(labels, seed=1)[1])


def test_held_out_images_never_change() -> None:
    train_x, train_y, held_out_x, held_out_y = digits.load_digits()
    assert train_x.shape == (1258, 8, 8, 1)
    assert held_out_x.shape == (539, 8, 8, 1)
    assert len(train_y) == len(train_x)
    contents = held_out_x.tobytes() + held_out_y.tobytes()
    assert hashlib.sha256(contents).hexdigest() == HELD_OUT_DIGEST
    seen = {image.tobytes() for image in train_x}
    assert not [image for image in held_out_x if image.tobytes() in seen]


def test_encode_is_exact() -> None:
    levels = np.arange(64).reshape(1, 8, 8) % 17
    codes = digits.encode(levels)
    np.testing.assert_array_equal((codes[..., 0].astype(int) + 128) / 15, levels)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (np.zeros((8, 8)), r"digits must have the shape \(images, 8, 8\), not \(8, 8\)"),
        (np.full((1, 8, 8), 17), r"the levels of digits must be whole and within 0\.\.16"),
        (np.full((1, 8, 8), 0.5), r"the levels of digits must be whole and within 0\.\.16"),
        (np.full((1, 8, 8), np.nan), r"the levels of digits must be whole and within 0\.\.16"),
    ],
)
def test_encode_refuses(levels: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        digits.encode(levels)


def test_figures_are_those_of_the_file() -> None:
    model = digits.MODEL.read_bytes()
    figures = json.loads(digits.FIGURES.read_text())
    assert figures["sha256"] == hashlib.sha256(model).hexdigest()
    assert figures["float_accuracy"] >= 0.98
    assert figures["int8_accuracy"] >= 0.975
    _, _, x, y = digits.load_digits()
    assert figures["held_out_count"] == len(y)
    interpreter = runtime.Interpreter.from_bytes(model)
    right = 0
    for image, label in zip(x, y, strict=True):
        interpreter.set_input(image[np.newaxis], 0)
        interpreter.invoke()
        right += int(np.argmax(interpreter.get_output(0)) == label)
    assert right / len(y) == figures["int8_accuracy"]
