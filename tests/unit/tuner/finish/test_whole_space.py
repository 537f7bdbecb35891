import pytest

from tuner.finish.whole_space import WholeSpace


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (0.0, "best of all 96 schedules, at 95%"),
        (0.0131, "best of all 96 schedules, within 1.3%, at 95%"),
        (0.0009, "best of all 96 schedules, within 0.09%, at 95%"),
    ],
)
def test_the_claim_in_words(margin: float, words: str) -> None:
    assert str(WholeSpace(96, margin)) == words
