"""The example that watches a folder: each image once, when it is complete."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from slipstick.errors import InputError
from slipstick.examples import watch_folder
from slipstick.examples.digits import MODEL
from slipstick.examples.watch_folder import image_states, new_images
from slipstick.session import InferenceSession


def save(path: Path, seed: int) -> np.ndarray:
    image = np.random.default_rng(seed).integers(0, 256, (8, 8), dtype=np.uint8)
    Image.fromarray(image).save(path)
    return image


def test_prints_the_class_of_each_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = [save(tmp_path / f"{at}.png", at) for at in range(4)]
    (tmp_path / "bad.png").write_bytes(b"no picture")
    (tmp_path / "other.txt").write_text("no picture")
    arguments = [str(tmp_path), "--device", "model", "--target", "sim-small", "--once"]
    monkeypatch.setattr(sys, "argv", ["watch_folder", *arguments])
    assert watch_folder.main() == 0
    lines = capsys.readouterr().out.splitlines()
    with InferenceSession(MODEL, "model", "sim-small") as session:
        (name,) = session.program.inputs
        (scores,) = session.run(None, {name: np.stack(images)[..., None]})
    wanted = [f"{at}.png: class {row.argmax()}" for at, row in enumerate(scores)]
    assert [line for line in lines if ": class" in line] == wanted
    assert sum(line.startswith("bad.png: input") for line in lines) == 1
    assert "other.txt" not in "".join(lines)


def test_a_file_is_taken_when_it_does_not_change_any_more(tmp_path: Path) -> None:
    save(tmp_path / "first.png", 1)
    found = new_images(tmp_path, once=False, pause=0.0)
    assert next(found).name == "first.png"
    (tmp_path / "second.png").write_bytes(b"")
    save(tmp_path / "second.png", 2)
    assert next(found).name == "second.png"
    assert [path.name for path in new_images(tmp_path, once=True)] == ["first.png", "second.png"]


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder .* is not there"):
        image_states(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="folder .* cannot be read: Not a directory"):
        image_states(tmp_path / "file")
