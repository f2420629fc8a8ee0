"""What a prefill server sends of a linear state."""

from hypic_engine.plugin.models import lightning


def test_tensors_of_no_bytes_are_left_out_of_addresses_and_dimensions() -> None:
    buffers = ([0, 0, 4096, 8192], [0, 0, 640, 640], [0, 0, 64, 64])
    assert lightning.state_buffers(buffers) == ([4096, 8192], [640, 640], [64, 64])
    assert lightning.state_dims([0, 0, 4, 4]) == [4, 4]


def test_a_state_with_convolution_tails_is_sent_whole() -> None:
    buffers = ([2048, 4096], [96, 640], [24, 64])
    assert lightning.state_buffers(buffers) == buffers
    assert lightning.state_dims([3, 4]) == [3, 4]
