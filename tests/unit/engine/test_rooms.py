import copy
from types import SimpleNamespace

from hypic_engine.plugin.front.rooms import Rooms


def sent(prompt, n_times):
    """Rooms in which copies of a prompt are sent, as SGLang does with n samples."""
    Rooms().number(prompt)
    copies = [copy.copy(prompt) for _ in range(n_times)]
    for one in copies:
        Rooms().assign(None, one)
        assert "hypic_sent" not in vars(one)
    return [one.bootstrap_room for one in copies]


def test_each_sample_has_a_room_of_its_own_and_the_first_keeps_the_prompt_s():
    rooms = sent(SimpleNamespace(bootstrap_room=5), 9)
    assert rooms[0] == 5
    assert len(set(rooms)) == 9
    assert all(0 <= room < 1 << 63 for room in rooms)


def test_both_servers_find_the_same_rooms():
    assert sent(SimpleNamespace(bootstrap_room=77), 4) == sent(
        SimpleNamespace(bootstrap_room=77), 4
    )


def test_prompts_of_one_batch_never_share_a_room():
    rooms = [room for k in range(8) for room in sent(SimpleNamespace(bootstrap_room=k), 8)]
    assert len(set(rooms)) == len(rooms)


def test_a_request_without_a_room_gets_none():
    prompt = SimpleNamespace(bootstrap_room=None)
    assert sent(prompt, 2) == [None, None]
