"""What is between a board's thread and the client: one wake-up, one write."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from slipstick.server.answers import Answers
from slipstick.server.joined_writes import JoinedWrites


def counting_wakes(loop: asyncio.AbstractEventLoop) -> list[None]:
    """Grows by one whenever a thread wakes the loop."""
    wakes: list[None] = []
    wake = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *arguments: Any, **more: Any) -> asyncio.Handle:
        wakes.append(None)
        return wake(callback, *arguments, **more)

    loop.call_soon_threadsafe = counted
    return wakes


def in_a_thread(action: Callable[[], object]) -> None:
    """Runs while the event loop waits."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def test_answers_that_come_together_wake_the_loop_once() -> None:
    async def run() -> tuple[list[int], int]:
        answers, computed = Answers[int](), [Future[int]() for _ in range(10)]
        wakes = counting_wakes(asyncio.get_running_loop())
        waiting = [answers.awaitable(future) for future in computed]
        in_a_thread(lambda: [f.set_result(n) for n, f in enumerate(computed)])
        found = await asyncio.gather(*waiting)
        # the next one wakes it again
        last = Future[int]()
        threading.Timer(0.05, last.set_result, (10,)).start()
        return [*found, await answers.awaitable(last)], len(wakes)

    assert asyncio.run(run()) == (list(range(11)), 2)


def test_many_threads() -> None:
    count, threads = 500, 4

    async def run() -> list[int]:
        answers = Answers[int]()
        computed = [[Future[int]() for _ in range(count)] for _ in range(threads)]

        def compute(number: int) -> None:
            for at, future in enumerate(computed[number]):
                future.set_result(number * count + at)

        waiting = [answers.awaitable(future) for own in computed for future in own]
        started = [threading.Thread(target=compute, args=(n,)) for n in range(threads)]
        for thread in started:
            thread.start()
        return list(await asyncio.wait_for(asyncio.gather(*waiting), 20))

    assert asyncio.run(run()) == list(range(threads * count))


def test_errors_and_cancelled_ones() -> None:
    async def run() -> None:
        answers = Answers[int]()
        failed, withdrawn, unwanted = Future[int](), Future[int](), Future[int]()
        first, second, third = map(answers.awaitable, (failed, withdrawn, unwanted))
        third.cancel()
        in_a_thread(lambda: (failed.set_exception(KeyError("why")), withdrawn.cancel()))
        with pytest.raises(KeyError, match="why"):
            await first
        with pytest.raises(asyncio.CancelledError):
            await second
        await asyncio.sleep(0)
        assert unwanted.cancelled()

    asyncio.run(run())


def test_an_answer_for_a_loop_that_has_ended_is_nobodys() -> None:
    answers, late = Answers[int](), Future[int]()

    async def give_up() -> None:
        answers.awaitable(late)

    asyncio.run(give_up())
    late.set_result(1)
    done = Future[int]()
    done.set_result(2)

    async def ask() -> int:
        return await asyncio.wait_for(answers.awaitable(done), 5)

    assert asyncio.run(ask()) == 2


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def written(action: Callable[[JoinedWrites], object]) -> list[bytes]:
    async def run() -> list[bytes]:
        wire = Wire()
        action(JoinedWrites(wire))
        await asyncio.sleep(0)
        return wire.writes

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([b"head", b"body"], [b"headbody"]),
        ([b"head"], [b"head"]),
        ([b"head", b""], [b"head"]),
        ([b"", b"head", b"body", b"more"], [b"headbody", b"more"]),
    ],
)
def test_two_writes_are_one(parts: list[bytes], expected: list[bytes]) -> None:
    assert written(lambda joined: [joined.write(part) for part in parts]) == expected


def test_what_waits_is_sent_before_the_end() -> None:
    def end(joined: JoinedWrites) -> None:
        joined.write(b"head")
        joined.close()
        assert joined.is_closing()

    assert written(end) == [b"head"]


def test_an_abort_sends_nothing() -> None:
    def end(joined: JoinedWrites) -> None:
        joined.write(b"head")
        joined.abort()

    assert written(end) == []
