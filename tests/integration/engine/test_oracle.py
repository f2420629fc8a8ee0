import pytest

from .oracle_cases import answers, cases, wanted


def mismatches(engine, model, drawn):
    pairs = zip(drawn, answers(engine, drawn), strict=True)
    found = [case for case, answer in pairs if answer != wanted(model, case)]
    print(f"oracle: {len(drawn)} cases, {len(found)} mismatches")
    return found


def test_engine_and_oracle_give_the_same_tokens_whatever_is_cached(engine, model):
    assert not mismatches(engine, model, cases(seed=1, n_cases=60))


@pytest.mark.parametrize("lightning", ["ring", "bailing-v2.5"], indirect=True)
def test_lightning_models_do_too(lightning):
    engine, model = lightning
    assert not mismatches(engine, model, cases(seed=2, n_cases=24))
