"""The rules of how devices divide batches."""

import pytest
from slipstick.errors import InputError
from slipstick.training.parallel.division import Division


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gradient_bits": 3}, "gradient_bits must be 32, 8, 4, 2 or 1, not 3"),
        ({"local_steps": 0}, "local_steps must be at least 1, not 0"),
        ({"local_steps": 2, "gradient_bits": 8}, "must be 32 beside local_steps 2, not 8: models"),
        ({"parts": 0}, "parts must be at least 1, not 0"),
        (
            {"parts": 3, "local_steps": 2},
            "parts must be a power of two beside local_steps 2, not 3",
        ),
        ({"parts": 17}, "parts must be at most the 16 images of a batch, not 17"),
    ],
)
def test_rules(options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Division(**options).check(16)


def test_messages_call_options_by_the_names_of_the_caller() -> None:
    with pytest.raises(InputError, match="^PARTS must be at least 1, not 0$"):
        Division(parts=0).check(named=str.upper)


def test_parts_are_the_devices_unless_given() -> None:
    assert Division().among(3).parts == 3 and Division(parts=4).among(3).parts == 4
    with pytest.raises(InputError, match="parts must be a power of two .*, not 3"):
        Division(local_steps=2).among(3)


def test_settings_have_parts_only_where_bits_depend_on_them() -> None:
    exact = Division(parts=4)
    assert exact.is_exact and exact.settings()["parts"] is None
    for options in ({"gradient_bits": 8}, {"local_steps": 2}):
        division = Division(parts=4, **options)
        assert not division.is_exact and division.settings()["parts"] == 4
