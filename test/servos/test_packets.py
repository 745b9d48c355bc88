# SPDX-License-Identifier: Apache-2.0
"""Packets of both protocols: published examples, round trips, and streams with damage."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ik_node.errors import InputError
from ik_node.servos.bus.dynamixel import REBOOT, dynamixel
from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.packets import BROADCAST, PING, Instruction, Status

pytestmark = pytest.mark.slow

CODECS = pytest.mark.parametrize('codec', [feetech, dynamixel], ids=['feetech', 'dynamixel'])
STUFF = st.lists(st.sampled_from([0xFF, 0xFD, 0x00, 0x55, 0x01]), max_size=40).map(bytes)
DATA = st.binary(max_size=60) | STUFF
STATUSES = st.builds(Status, st.integers(0, 252), st.integers(0, 255), DATA)
# A code 55 would be a status of Dynamixel.
INSTRUCTIONS = st.builds(Instruction, st.integers(0, 252), st.integers(1, 0x54), DATA)


def in_pieces(data, cuts):
    """Split data at the given places."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize(
    ('codec', 'packet', 'text'),
    [
        (feetech, Instruction(1, PING), 'FF FF 01 02 01 FB'),
        (feetech, feetech.read(1, 0x38, 2), 'FF FF 01 04 02 38 02 BE'),
        (feetech, feetech.sync_read([1, 2], 0x38, 8), 'FF FF FE 06 82 38 08 01 02 36'),
        (feetech, feetech.write(BROADCAST, 0x05, b'\x01'), 'FF FF FE 04 03 05 01 F4'),
        (feetech, Status(1), 'FF FF 01 02 00 FC'),
        (feetech, Status(1, 0, b'\x18\x05'), 'FF FF 01 04 00 18 05 DD'),
        (dynamixel, Instruction(1, PING), 'FF FF FD 00 01 03 00 01 19 4E'),
        (dynamixel, dynamixel.read(1, 132, 4), 'FF FF FD 00 01 07 00 02 84 00 04 00 1D 15'),
        (dynamixel, dynamixel.write(1, 116, b'\0\2\0\0'), 'FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89'),
        (dynamixel, dynamixel.sync_read([1, 2], 132, 4), 'FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA'),
        (dynamixel, Instruction(1, REBOOT), 'FF FF FD 00 01 03 00 08 2F 4E'),
        (dynamixel, Status(1, 0, b'\x06\x04\x26'), 'FF FF FD 00 01 07 00 55 00 06 04 26 65 5D'),
        (dynamixel, Status(1, 0, b'\xa6\0\0\0'), 'FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0'),
    ],
)
def test_packets_of_the_manuals(codec, packet, text):
    assert codec.encode(packet) == bytes.fromhex(text)
    assert codec.parser(type(packet)).feed(bytes.fromhex(text)) == [packet]


@CODECS
@given(
    packets=st.lists(STATUSES, min_size=1, max_size=5) | st.lists(INSTRUCTIONS, min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 1000)),
)
@example(packets=[Status(1, 0, b'\xff\xff\xfd'), Status(2, 0xFF, b'\xff\xfd\xfd')], cuts=[])
def test_packets_come_back_however_they_are_split(codec, packets, cuts):
    parser = codec.parser(type(packets[0]))
    stream = b''.join(map(codec.encode, packets))
    assert [packet for piece in in_pieces(stream, cuts) for packet in parser.feed(piece)] == packets
    assert parser.finish() == []
    assert parser.junk == 0  # nor was anything left


@given(STATUSES)
def test_no_header_is_left_within_a_stuffed_packet(status):
    assert dynamixel.encode(status)[4:-2].find(b'\xff\xff\xfd\x00') < 0


@CODECS
@pytest.mark.parametrize('kind', [Status, Instruction])
@given(stream=st.binary(max_size=200) | STUFF)
def test_no_bytes_raise_and_every_packet_is_among_them(codec, kind, stream):
    """A packet is never made up: its own bytes, with a right checksum, are in the stream."""
    parser = codec.parser(kind)
    for packet in parser.feed(stream) + parser.finish():
        assert codec.encode(packet) in stream


@CODECS
@given(status=STATUSES, place=st.integers(0, 500), flip=st.integers(1, 255))
def test_a_wrong_byte_is_noticed(codec, status, place, flip):
    frame = bytearray(codec.encode(status))
    frame[place % len(frame)] ^= flip
    parser = codec.parser(Status)
    found = parser.feed(bytes(frame)) + parser.finish()
    assert status not in found
    assert parser.junk


@CODECS
def test_a_packet_behind_junk_and_damage_is_found(codec):
    good = Status(2, 0, b'\x18\x05')
    damaged = bytearray(codec.encode(Status(1, 0, b'\x00\x08')))
    damaged[-1] ^= 0x10
    parser = codec.parser(Status)
    assert parser.feed(b'\x00\xff' + bytes(damaged) + codec.encode(good)) == [good]
    assert parser.suspects == {1}


@CODECS
def test_a_packet_behind_one_whose_length_grew_is_found_at_the_end(codec):
    good = Status(2, 0, b'\x18\x05')
    damaged = bytearray(codec.encode(Status(1, 0, b'\x00\x08')))
    damaged[3 if codec is feetech else 5] = 100
    parser = codec.parser(Status)
    assert parser.feed(bytes(damaged) + codec.encode(good)) == []
    assert parser.finish() == [good]


def test_an_echo_is_no_status_of_dynamixel():
    echo = dynamixel.encode(Instruction(1, PING))
    assert dynamixel.parser(Status).feed(echo + dynamixel.encode(Status(1))) == [Status(1)]


@CODECS
@pytest.mark.parametrize(
    'wrong',
    [
        lambda codec: codec.read(254, 0, 1),
        lambda codec: codec.read(1, 0x10000, 1),
        lambda codec: codec.read(1, 0, 0),
        lambda codec: codec.read(1, 0, 5000),
        lambda codec: codec.write(1, 0, b''),
        lambda codec: codec.sync_read([1, 254], 0, 2),
        lambda codec: codec.sync_write(0, {}),
        lambda codec: codec.sync_write(0, {1: b'ab', 2: b'a'}),
        lambda codec: codec.encode(Status(255)),
        lambda codec: codec.encode(Status(1, 256)),
        lambda codec: codec.encode(Status(1, 0, bytes(2000))),
    ],
)
def test_what_fits_into_no_packet_is_rejected(codec, wrong):
    with pytest.raises(InputError):
        codec.encode(wrong(codec))
