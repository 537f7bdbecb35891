import json

import pytest

from workers.wire.frames import MAX_FRAME_BYTES, FrameDecoder, FrameError, Message, encode


def test_messages_come_out_whole_however_the_bytes_are_cut() -> None:
    messages: list[Message] = [{"a": 1}, {"text": "é" * 100}, {}]
    stream = b"".join(encode(message) for message in messages)
    decoder = FrameDecoder()
    found = [m for i in range(len(stream)) for m in decoder.feed(stream[i : i + 1])]
    assert found == messages
    assert list(FrameDecoder().feed(stream)) == messages


def test_half_a_frame_is_no_message_yet() -> None:
    assert list(FrameDecoder().feed(encode({"a": 1})[:-1])) == []


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02{]",
        b"\x00\x00\x00\x02\xff\xfe",
        b"\x00\x00\x00\x01" + b"1",
        (100_000).to_bytes(4, "big") + b"[" * 100_000,
    ],
)
def test_what_is_no_frame_is_refused(content: bytes) -> None:
    with pytest.raises(FrameError):
        list(FrameDecoder().feed(content))


def test_a_message_that_is_too_long_is_refused_by_the_sender() -> None:
    with pytest.raises(FrameError, match="expected 16777216 or fewer"):
        encode({"text": "x" * MAX_FRAME_BYTES})


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"secs": float("nan")})


def test_a_frame_is_length_and_json() -> None:
    frame = encode({"a": [1, 2]})
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert json.loads(frame[4:]) == {"a": [1, 2]}
