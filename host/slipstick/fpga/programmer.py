"""Bitstreams onto boards, through openFPGALoader; whatever is missing is said in one sentence."""

import json
import re
from pathlib import Path

from slipstick_rtl.toplevel.board import Programmer
from slipstick_rtl.toplevel.registry import all_boards

from .. import toolchain as tools
from ..errors import DeviceError, SlipstickError, TargetError
from ..targets import Target
from .build import default_output
from .toolchains import find_toolchain

_ABSENT = re.compile(
    r"device not found|no (dfu|usb) .*found|cannot find (a )?(device|cable)|not found .*cable", re.I
)
_FORBIDDEN = re.compile(r"usb_open failed|LIBUSB_ERROR_ACCESS|permission denied|\b-4 \(", re.I)
_UNSUPPORTED = re.compile(r"support for (\w+) was not enabled")
_LIBRARY = re.compile(r"loading shared libraries: ([\w.+-]+)")


def find_bitstream(target: Target, bitstream: Path | None) -> Path:
    """The bitstream to program: the given one, or that of the target's last build.

    Raises
    ------
    TargetError
        If it is missing, or was built for other hardware than the target's.
    """
    if target.part is None:
        raise TargetError(f"target {target.name} has no board to program: it is only simulated")
    path = bitstream or default_output(target) / find_toolchain(target.part).bitstream
    if not path.is_file():
        raise TargetError(
            f"there is no bitstream {path}: build it with slipstick build --target {target.name}"
        )
    description = path.parent / "design.json"
    try:
        design = json.loads(description.read_text("utf-8"))
        fingerprint, board = str(design["fingerprint"]), design.get("board")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise TargetError(
            f"{description} must tell what {path.name} is, and cannot be read: build again with"
            f" slipstick build --target {target.name}"
        ) from None
    wanted = target.configuration.fingerprint
    if fingerprint != wanted:
        raise TargetError(
            f"bitstream {path} has fingerprint {fingerprint}, and target {target.name} has"
            f" {wanted}: build it with slipstick build --target {target.name}"
        )
    if board != target.board:
        raise TargetError(
            f"bitstream {path} must be one for board {target.board}, not for {board or 'none'}"
        )
    return path


def program(
    target: Target,
    *,
    bitstream: Path | None = None,
    flash: bool = False,
    cable: str | None = None,
    device: str | None = None,
) -> Path:
    """Programs the board that is connected; returns the log.

    Parameters
    ----------
    target : Target
    bitstream : Path
        By default that of the target's last build.
    flash : bool
        Into the board's flash, where it stays; else into the FPGA until the power goes.
    cable : str
        openFPGALoader's name of another programming cable than the board's own.
    device : str
        Bus and device number of one of several boards, such as ``1:7``.

    Raises
    ------
    TargetError
        If there is no bitstream, no openFPGALoader, or the board cannot do what is asked.
    DeviceError
        If no board is found, it must not be opened, or programming fails.
    """
    path = find_bitstream(target, bitstream)
    programmer = _find_programmer(target)
    if not flash and not programmer.volatile:
        raise TargetError(
            f"{target.name} takes bitstreams only into its flash, where they stay: add --flash"
        )
    reached = ["--cable", cable] if cable else ["--board", programmer.board]
    if device is not None:
        reached += ["--busdev-num", device]
    memory = "--write-flash" if flash else "--write-sram"
    command = [tools.LOADER.find(), *reached, memory, str(path.resolve())]
    log = path.resolve().parent / "program.log"
    try:
        tools.run("programming", command, folder=path.resolve().parent, log=log)
    except TargetError as error:
        said = log.read_text("utf-8", errors="replace") if log.exists() else ""
        raise _failure(target, programmer, said, log, error) from None
    return log


def _find_programmer(target: Target) -> Programmer:
    boards = all_boards()
    board = boards.get(target.board or "")
    if board is None or board.programmer is None:
        known = ", ".join(name for name, other in boards.items() if other.programmer is not None)
        raise TargetError(
            f"board {target.board} must be programmed with its vendor's tool: openFPGALoader is"
            f" known to reach {known}"
        )
    return board.programmer


def _failure(
    target: Target, programmer: Programmer, said: str, log: Path, error: TargetError
) -> SlipstickError:
    """Makes the error with the advice that fits openFPGALoader's messages."""
    where = f"(the whole log: {log})"
    library = _LIBRARY.search(said)
    if library is not None:
        return TargetError(
            f"openFPGALoader needs the library {library[1]} of the system: on Debian,"
            f" apt install libusb-1.0-0 libftdi1-2 {where}"
        )
    unsupported = _UNSUPPORTED.search(said)
    if unsupported is not None:
        return TargetError(
            f"openFPGALoader must support the cable {unsupported[1]} of the board for"
            f" {target.name}, and this one was built without: install another one, and name it in"
            f" {tools.LOADER.variable} {where}"
        )
    if _FORBIDDEN.search(said):
        return DeviceError(
            f"the board for {target.name} is there, and this user must not open it: add"
            f" openFPGALoader's udev rules (99-openfpgaloader.rules), or join the group plugdev"
            f" and plug the board in again {where}"
        )
    if _ABSENT.search(said):
        return DeviceError(
            f"no board for {target.name} was found: {programmer.connect}, and see that it has"
            f" power {where}"
        )
    return DeviceError(str(error))
