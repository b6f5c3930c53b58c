"""The tutorials: their Python blocks run in the order of each page."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from litex_uart import BIT_CYCLES
from slipstick_sim import toolchain

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = {
    "first-network": ("252672 multiply-accumulates", "5142 cycles predicted", "530 of 539"),
    "own-board": ("ulx3s-25f        streamed: False", "of 50"),
    "own-number-format": ("lns1+3+4: 8 bits, steps of 4.4%", "1x8x8, "),
    "pytorch-to-board": ("streamed: False", "Slipstick, int8: 9"),
    "litex-soc": ("slipstick.v", "True"),
    "amaranth-design": ("the core answers: 1x4x4, fingerprint", "guesses: 1 4 6 9 ", "True"),
}
"""Fragments of what each page prints."""
NEEDS = {"pytorch-to-board": ("torch", "onnxscript"), "litex-soc": ("litex",)}
"""Packages that no extra of the development install has."""

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs the blocks of a page in one namespace, in a folder of their own."""
    monkeypatch.chdir(folder)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = (TUTORIALS / f"{name}.md").read_text()
    for match in _BLOCK.finditer(text):
        before = text[: match.start(1)].count("\n")
        # a traceback has the page's own line
        exec(compile("\n" * before + match[1], f"{name}.md", "exec"), namespace)
    return namespace


def test_every_page_is_tested() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_page(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason=f"this tutorial needs {package}: pip install {package}")
    namespace = _run(name, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    for fragment in PAGES[name]:
        assert fragment in printed
    if name == "pytorch-to-board":
        accuracy = namespace["accuracy"]
        assert accuracy["PyTorch, float32"] > 0.95
        assert accuracy["int8"] > accuracy["PyTorch, float32"] - 0.02
    if name == "own-number-format":
        accuracy = namespace["accuracy"]
        assert accuracy["float32"] > 0.9
        assert accuracy["lns1+3+4"] > accuracy["float32"] - 0.02


@pytest.mark.thorough
def test_the_soc_of_a_page_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With quick bits its UART bridge reads and writes the core's registers."""
    pytest.importorskip("litex", reason="this tutorial needs litex: pip install litex")
    folder, namespace = tmp_path, _run("litex-soc", tmp_path, monkeypatch)
    baud = namespace["CLOCK_HZ"] // BIT_CYCLES
    platform = namespace["LatticeECP5Platform"](
        "LFE5U-25F-6BG381C", namespace["PINS"], toolchain="trellis"
    )
    soc = namespace["Soc"](platform, folder / "core" / "slipstick.v", baud=baud)
    namespace["Builder"](soc, output_dir="quick").build(build_name="soc", run=False)
    support = str(Path(__file__).parents[1] / "support")
    monkeypatch.setenv("PYTHONPATH", support, prepend=os.pathsep)
    with toolchain.tool_environment():
        runner = get_runner("verilator")
        runner.build(
            sources=["quick/gateware/soc.v", "core/slipstick.v"],
            hdl_toplevel="soc",
            build_dir="simulation",
            build_args=["-Wno-fatal", "-Wno-lint"],
        )
        results = runner.test(
            test_module="litex_uart", hdl_toplevel="soc", build_dir="simulation", test_dir="."
        )
    assert get_results(results) == (1, 0)
