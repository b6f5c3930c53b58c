"""What `--cluster` takes."""

import pytest
from slipstick.cluster.address import MOST_LOCAL, check_scheduler, parse_address
from slipstick.errors import InputError


def test_processes_of_this_machine():
    address = parse_address("local:3")
    assert address.is_local and address.processes == 3


@pytest.mark.parametrize("text", ("tcp://10.0.0.1:8786", "tls://box:8786", "tcp://[::1]:8786"))
def test_schedulers(text):
    address = parse_address(text)
    assert not address.is_local and address.text == text == check_scheduler("--scheduler", text)


@pytest.mark.parametrize(
    "text",
    (
        *("", "foo", "local", "local:", "local:-1", "local:2.5", "tcp://", "tcp://box", "box:8786"),
        *("http://box:8786", "tcp://box:0", "tcp://box:70000", "tcp://user@box:1", "tcp://a b:1"),
    ),
)
def test_other_texts(text):
    with pytest.raises(InputError, match="--cluster must be local:N or tcp://HOST:PORT, not"):
        parse_address(text)


@pytest.mark.parametrize("processes", (0, MOST_LOCAL + 1))
def test_how_many_processes(processes):
    with pytest.raises(InputError, match=rf"must have 1\.\.{MOST_LOCAL} workers, not"):
        parse_address(f"local:{processes}")
