from __future__ import annotations

from collections.abc import Iterator

from workers.measure.begun import begins_at_call, closed_at_end


class Diary:
    def __init__(self) -> None:
        self.entries: list[str] = []

    @begins_at_call
    def inner(self, num: int) -> Iterator[int | None]:
        self.entries.append("begin")
        try:
            yield None
            yield from range(num)
        finally:
            self.entries.append("end")

    @begins_at_call
    def outer(self, num: int) -> Iterator[int | None]:
        with closed_at_end(self.inner(num)) as results:
            yield None
            yield from results


def test_a_generator_begins_at_its_call_and_yields_its_items() -> None:
    diary = Diary()
    results = diary.outer(3)
    assert diary.entries == ["begin"]
    assert list(results) == [0, 1, 2]
    assert diary.entries == ["begin", "end"]


def test_a_generator_of_which_nothing_was_read_ends_when_it_is_closed() -> None:
    diary = Diary()
    with closed_at_end(diary.outer(3)):
        pass
    assert diary.entries == ["begin", "end"]


def test_an_iterator_that_cannot_be_closed_is_left_alone() -> None:
    with closed_at_end(iter([1, 2])) as results:
        assert list(results) == [1, 2]
