"""The errors that users meet: each message names the thing, the value and the rule."""


class SlipstickError(Exception):
    """Base of everything that Slipstick raises on bad input; the command line exits with 2."""


class ModelError(SlipstickError):
    """A model file that cannot be read, or that is malformed."""


class UnsupportedError(SlipstickError):
    """A valid model that holds something Slipstick does not run."""


class CapacityError(SlipstickError):
    """Something that should fit the target, and does not: compilers take another way then."""


class ProgramError(SlipstickError):
    """A program file that cannot be read, or that was compiled for other hardware."""


class InputError(SlipstickError):
    """Input data of the wrong shape, type or content."""


class DeviceError(SlipstickError):
    """A device that cannot be opened, or that answered with an error."""


class StateLostError(DeviceError):
    """A loss of what a network keeps from run to run: only a reset makes it defined again."""


class TargetError(SlipstickError):
    """A target that is unknown or cannot be built."""
