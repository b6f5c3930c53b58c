"""Defines why a request is not answered, and its status in HTTP and in gRPC."""

from enum import Enum

from ..errors import DeviceError, InputError, SlipstickError


class Refusal(Enum):
    """A reason: the status of HTTP, and the name of gRPC's."""

    BAD_REQUEST = (400, "INVALID_ARGUMENT")
    UNAUTHORIZED = (401, "UNAUTHENTICATED")
    FORBIDDEN = (403, "PERMISSION_DENIED")
    NOT_FOUND = (404, "NOT_FOUND")
    TIMEOUT = (408, "DEADLINE_EXCEEDED")
    TOO_LARGE = (413, "RESOURCE_EXHAUSTED")
    UNSUPPORTED_BODY = (415, "UNIMPLEMENTED")
    WRONG_HOST = (421, "PERMISSION_DENIED")
    FULL = (429, "RESOURCE_EXHAUSTED")
    INTERNAL = (500, "INTERNAL")
    UNAVAILABLE = (503, "UNAVAILABLE")

    @property
    def http_status(self) -> int:
        """The status of an HTTP response."""
        return self.value[0]

    @property
    def grpc_code(self) -> str:
        """The name of a member of ``grpc.StatusCode``."""
        return self.value[1]


class RequestError(SlipstickError):
    """A request that is not answered.

    Parameters
    ----------
    refusal : Refusal
    message : str
        For the client.
    """

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


def bad_request(message: str) -> RequestError:
    """Returns the error of a request that breaks a rule."""
    return RequestError(Refusal.BAD_REQUEST, message)


def as_request_error(error: Exception) -> RequestError | None:
    """Returns what a client is told of an error; None: the error is a bug."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, InputError):
        return bad_request(str(error))
    if isinstance(error, DeviceError):
        return RequestError(Refusal.UNAVAILABLE, str(error))
    return None
