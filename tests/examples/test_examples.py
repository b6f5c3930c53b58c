"""The examples: each script runs from any working directory, each notebook from top to bottom."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = {
    "batch": "results equal: True",
    "classify": "accuracy: 530 of 539 (98.3%)",
    "compare_with_reference": "1000 output codes, 0 differ from tflm",
    "compile_and_save": "the saved program reads a 1, the label is 1",
    "export_verilog": "module slipstick: clock aclk, reset aresetn",
    "fine_tune": "the new file: 9",
    "kept_state": "run 3: [3, 6, 9, 12]\nafter the reset: [1, 2, 3, 4]",
    "onnx_network": "largest difference from float32: 0.0",
    "own_configuration": "refused: columns must be a power of two, not 12",
    "pool": "results equal: True",
    "predict_cycles": "ulx3s-85f    1x32x16",
    "profile_layers": "cycles simulated",
    "quantize_lns": "lns6 (lns1+3+2): ",
    "random_networks": "elements compared, 0 mismatches",
    "stream_large_network": "results equal: True",
}
"""A fragment of each script's output."""

SLOW = ("fine_tune", "profile_layers")
"""Train, or compile a core of a board's size."""

NOTEBOOKS = {
    "first_network": "accuracy: 530 of 539",
    "number_formats": "lns1+3+4: 8 bits, steps of 4.4%",
}
LONGEST_SECONDS = 600
"""Enough to build a simulation on a busy machine; one by one, the other scripts take 1 to 20 s."""


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)
    assert {path.stem for path in EXAMPLES.glob("notebooks/*.ipynb")} == set(NOTEBOOKS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough) if name in SLOW else name for name in SCRIPTS],
)
def test_script(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert SCRIPTS[name] in done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_small_and_documented(name: str) -> None:
    source = (EXAMPLES / f"{name}.py").read_text()
    assert 10 <= len(source.splitlines()) <= 60
    assert source.startswith('"""')
    assert "rints " in source.split('"""')[1]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", pyplot.close)
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "notebooks" / f"{name}.ipynb").read_text())
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], f"cell {number} holds outputs"
        exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), namespace)
    assert NOTEBOOKS[name] in capsys.readouterr().out
