"""The wheel: packages, their data, and the boards' build reports."""

import json
import zipfile
from pathlib import Path

import pytest
import slipstick
from hatchling.builders.wheel import WheelBuilder
from slipstick import reports
from slipstick.examples.digits import MODEL

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def test_it_has_every_module_and_its_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for layer, package in (
        ("rtl", "slipstick_rtl"),
        ("sim", "slipstick_sim"),
        ("host", "slipstick"),
    ):
        files = [
            str(path.relative_to(ROOT / layer))
            for path in (ROOT / layer / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        ]
        assert files and set(files) <= names
    digits = MODEL.relative_to(Path(slipstick.__file__).parents[1])
    assert {"slipstick/py.typed", str(digits)} <= names


def test_an_installed_wheel_knows_the_builds(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = ROOT / "reports"
    built = sorted(
        path.name for path in [*committed.glob("build-*.json"), committed / "end_to_end.json"]
    )
    with zipfile.ZipFile(wheel) as archive:
        folder = "slipstick/build_reports/"
        found = [name for name in archive.namelist() if name.startswith(folder)]
        assert sorted(name.removeprefix(folder) for name in found) == built
        archive.extractall(tmp_path, [*found, "slipstick/reports.py"])
    # the module looks for the folder beside itself
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reports, "__file__", str(tmp_path / "slipstick" / "reports.py"))
    assert reports.folders() == [tmp_path / "slipstick" / "build_reports"]
    # that of any gateware: the newest one may not have been built yet
    of_file = json.loads((ROOT / "reports" / "build-ulx3s-25f.json").read_text())
    last = reports.last_build(of_file["fingerprint"], "ulx3s-25f")
    assert last is not None and last["fmax_mhz"] == of_file["fmax_mhz"] > 100
