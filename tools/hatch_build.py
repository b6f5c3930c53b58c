"""Puts the reports of the boards' builds into the wheel, for ``slipstick targets``."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildReports(BuildHookInterface):
    """Adds ``reports/build-*.json`` to the package's folder ``build_reports``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files, unless the install is editable: that one reads the checkout's."""
        if version == "editable":
            return
        for path in sorted(Path(self.root, "reports").glob("build-*.json")):
            build_data["force_include"][str(path)] = f"slipstick/build_reports/{path.name}"
