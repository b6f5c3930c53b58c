"""A device at the other end of a framed link: boards, the simulated board, the golden endpoint."""

from slipstick_rtl.link.identity import Identity

from .errors import LinkError
from .hold import Hold
from .link_device import LinkDevice
from .patience import Patience
from .request import LostAnswerError, Request

__all__ = ["Hold", "Identity", "LinkDevice", "LinkError", "LostAnswerError", "Patience", "Request"]
