from __future__ import annotations

import pytest

from service.store.database.bulk import array_literal, padded


@pytest.mark.parametrize(("num", "length"), [(0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (8, 8)])
def test_values_are_padded_with_the_last_one_up_to_a_power_of_two(num: int, length: int) -> None:
    values = list(range(num))
    assert padded(values) == values + values[-1:] * (length - num)


def test_an_array_literal_quotes_texts_and_no_numbers() -> None:
    values = [None, 1, 2.5, float("inf"), True, 'a "b" \\c', "NULL", ""]
    assert array_literal(values) == r'{NULL,1,2.5,inf,True,"a \"b\" \\c","NULL",""}'
