"""Settings of all tests."""

import os
from collections import defaultdict

import pytest

# A test runs what it compiles for a short time.
os.environ.setdefault("SLIPSTICK_OPTIMISATION", "-O1")

_FILES = 40
"""Of test files, that the summary names: those that took the most time."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Adds up per file what ``--durations`` lists per test: most time is in many short tests."""
    if terminalreporter.config.option.durations is None:
        return
    seconds = defaultdict[str, float](float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section(f"seconds per file, {sum(seconds.values()):.0f} in all")
    slowest = sorted(seconds.items(), key=lambda entry: -entry[1])
    for name, spent in slowest[:_FILES]:
        terminalreporter.line(f"{spent:8.1f} {name}")
