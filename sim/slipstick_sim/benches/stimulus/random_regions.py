"""Random regions of the activation memory, of every shape that a tensor has there, and others."""

import random

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Region


def random_region(generator: random.Random, configuration: Configuration) -> Region:
    """A region, mostly within the memory; its ``count`` always is, and within the region."""
    size = configuration.activation_bytes
    shape = generator.choice((_rows, _rows, _planes, _planes, _bytes, _line, _large))
    run_bytes, runs, planes, gap, plane_gap = shape(generator, size)
    # mostly low, so that something of the region lies within the memory
    low = [generator.randrange(size // 4) for _ in range(5)]
    high = [generator.randrange(size), size - 1, size, (1 << 24) - 1]
    address = generator.choice([0, *low, *high])
    region = Region(
        address=address,
        run_bytes=run_bytes,
        runs=runs,
        planes=planes,
        gap=gap,
        plane_gap=plane_gap,
    )
    most = min(readable_bytes(region, size), configuration.payload_bytes)
    count = generator.choice((most, most, generator.randint(0, most), min(1, most), 0))
    return Region(**{**vars(region), "count": count})


def readable_bytes(region: Region, size: int) -> int:
    """Bytes from the region's beginning on before one that lies beyond the memory."""
    count = 0
    for address, run_bytes in region.addresses():
        count += max(0, min(run_bytes, size - address))
        if address + run_bytes > size:
            break
    return count


def _rows(generator: random.Random, size: int) -> tuple[int, ...]:
    """Narrow runs with gaps between."""
    return generator.randint(1, 9), generator.randint(1, 40), 1, generator.randint(0, 7), 0


def _planes(generator: random.Random, size: int) -> tuple[int, ...]:
    """Some planes of a few rows."""
    gaps = generator.randint(0, 5), generator.randint(0, 30)
    return generator.randint(1, 5), generator.randint(1, 5), generator.randint(1, 6), *gaps


def _bytes(generator: random.Random, size: int) -> tuple[int, ...]:
    """A byte here and a byte there."""
    gaps = generator.choice((0, 1, 3)), generator.choice((0, 2))
    return 1, generator.choice((1, 2, 200)), generator.choice((1, 2, 50)), *gaps


def _line(generator: random.Random, size: int) -> tuple[int, ...]:
    """One run; or the whole memory."""
    return generator.choice((size, generator.randint(1, size))), 1, 1, 0, 0


def _large(generator: random.Random, size: int) -> tuple[int, ...]:
    """Draws a region of extreme sizes and gaps, mostly more than the memory holds."""
    sizes = (generator.choice((1, 3, 1 << 16)) for _ in range(3))
    return *sizes, generator.choice((0, 0xFFFF)), generator.choice((0, 0xFFFF))
