import pytest
import torch

from hypic_engine.ops.delta_rule import chunked, operators, recurrent, snapshots

from .cases import LENGTHS, Shape, poisoned, rule

SHAPES = (Shape(), Shape(1, 1, 16, 8), Shape(2, 2, 64, 64), Shape(1, 6, 24, 40))
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


def exact(arguments):
    return recurrent(*(x.double() for x in arguments))


def test_one_token_writes_what_the_formula_says():
    q, k, v, g, beta, state = rule(1, Shape(1, 1, 4, 3))
    out, after = recurrent(q, k, v, g, beta, state)
    key = k[0, 0] * torch.rsqrt((k[0, 0] ** 2).sum() + 1e-6)
    query = q[0, 0] * torch.rsqrt((q[0, 0] ** 2).sum() + 1e-6) / 2
    forget = torch.eye(4) - beta[0, 0] * torch.outer(key, key)
    expected = g[0, 0].exp() * state[0] @ forget + beta[0, 0] * torch.outer(v[0, 0], key)
    torch.testing.assert_close(after[0], expected)
    torch.testing.assert_close(out[0, 0], expected @ query)


@pytest.mark.parametrize("n_tokens", LENGTHS)
@pytest.mark.parametrize("forget", [0.001, 1.0, 100.0])
def test_chunks_give_what_the_recurrence_gives_in_float64(n_tokens, forget):
    arguments = rule(n_tokens, Shape(), forget=forget)
    out, state = exact(arguments)
    chunk_out, chunk_state = chunked(*arguments)
    assert chunk_out.dtype == chunk_state.dtype == torch.float32
    torch.testing.assert_close(chunk_out.double(), out, **CLOSE)
    torch.testing.assert_close(chunk_state.double(), state, **CLOSE)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rule_of", [recurrent, chunked])
def test_every_head_count_and_width_agrees_with_float64(shape, rule_of):
    arguments = rule(70, shape)
    for got, expected in zip(rule_of(*arguments), exact(arguments), strict=True):
        torch.testing.assert_close(got.double(), expected, **CLOSE)


@pytest.mark.parametrize("rule_of", [recurrent, chunked])
def test_no_tokens_change_nothing(rule_of):
    arguments = rule(0, Shape())
    out, state = rule_of(*arguments)
    assert out.shape == (0, 4, 48)
    torch.testing.assert_close(state, arguments[5], rtol=0, atol=0)


def test_chunks_stay_exact_where_a_token_forgets_everything():
    q, k, v, g, beta, state = rule(200, Shape())
    g[50], g[120] = -1e4, -torch.inf
    for got, expected in zip(
        chunked(q, k, v, g, beta, state), recurrent(q, k, v, g, beta, state), strict=True
    ):
        torch.testing.assert_close(got, expected, **CLOSE)


def test_the_arguments_are_not_changed():
    arguments = rule(70, Shape())
    copies = [x.clone() for x in arguments]
    chunked(*arguments)
    recurrent(*arguments)
    operators(*arguments[1:5])
    for x, copy in zip(arguments, copies, strict=True):
        assert torch.equal(x, copy)


def test_what_lies_around_the_tokens_is_never_read():
    arguments = rule(70, Shape())
    spoiled = tuple(poisoned(x) for x in arguments[:5]) + arguments[5:]
    for got, expected in zip(chunked(*spoiled), chunked(*arguments), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("n_tokens", LENGTHS)
@pytest.mark.parametrize("forget", [0.001, 1.0])
def test_an_operator_acts_on_any_state_as_its_tokens_do(n_tokens, forget):
    arguments = rule(n_tokens, Shape(), forget=forget)
    end, transition = operators(*arguments[1:5])
    _, after = exact(arguments)
    torch.testing.assert_close((arguments[5] @ transition + end).double(), after, **CLOSE)


@pytest.mark.parametrize("split", [0, 1, 2, 3, 63, 64, 65, 129, 130])
def test_operators_compose_wherever_the_tokens_are_split(split):
    arguments = rule(130, Shape(), forget=0.1)
    _, k, v, g, beta, _ = arguments
    end, transition = operators(k, v, g, beta)
    end_1, transition_1 = operators(*(x[:split] for x in (k, v, g, beta)))
    end_2, transition_2 = operators(*(x[split:] for x in (k, v, g, beta)))
    torch.testing.assert_close(transition_1 @ transition_2, transition, **CLOSE)
    torch.testing.assert_close(end_1 @ transition_2 + end_2, end, **CLOSE)


def test_composition_is_associative():
    parts = [operators(*rule(30, Shape(), forget=0.1, seed=seed)[1:5]) for seed in range(3)]

    def then(first, second):
        return first[0] @ second[1] + second[0], first[1] @ second[1]

    left = then(then(parts[0], parts[1]), parts[2])
    right = then(parts[0], then(parts[1], parts[2]))
    for got, expected in zip(left, right, strict=True):
        torch.testing.assert_close(got, expected, **CLOSE)


@pytest.mark.parametrize("n_tokens", [0, 1, 63, 64, 65, 200])
def test_snapshots_are_the_states_before_every_64th_token(n_tokens):
    arguments = rule(n_tokens, Shape())
    *sequence, state = arguments
    _, _, within = snapshots(*arguments)
    assert len(within) == -(-n_tokens // 64)
    for i, snapshot in enumerate(within):
        _, expected = exact((*(x[: 64 * i] for x in sequence), state))
        torch.testing.assert_close(snapshot.double(), expected, **CLOSE)
