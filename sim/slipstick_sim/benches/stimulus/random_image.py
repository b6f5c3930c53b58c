"""Places a random CONVOLVE's input."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Image:
    """An input in activation memory, and the padding before it.

    Parameters
    ----------
    base : int
        Address of its first byte.
    height, width : int
    row_pitch, pixel_pitch : int
        Bytes from a row, or pixel, to the next; a row's may be negative.
    top, left : int
        Rows and columns of padding before the first window's first tap.
    """

    base: int
    height: int
    width: int
    row_pitch: int
    pixel_pitch: int
    top: int
    left: int

    def fields(self, stride_x: int) -> dict[str, int]:
        """Returns the instruction's fields that only the input and the columns' stride decide."""
        return {
            "origin": self.base - self.top * self.row_pitch - self.left * self.pixel_pitch,
            "origin_y": -self.top,
            "origin_x": -self.left,
            "height": self.height,
            "width": self.width,
            "stride_x": stride_x,
            "column_step": stride_x * self.pixel_pitch,
        }
