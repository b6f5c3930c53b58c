"""Puts the reports of the boards' builds into the wheel, for ``slipstick targets``."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildReports(BuildHookInterface):
    """Adds ``build-*.json`` and ``end_to_end.json`` to the package's folder ``build_reports``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files, unless the install is editable: that one reads the checkout's."""
        if version == "editable":
            return
        folder = Path(self.root, "reports")
        for path in sorted([*folder.glob("build-*.json"), folder / "end_to_end.json"]):
            build_data["force_include"][str(path)] = f"slipstick/build_reports/{path.name}"
