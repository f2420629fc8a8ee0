import concurrent.futures

from ...support.oracle import Model, full, generate
from .oracle_cases import N_CASES, Case, cases

N_TOKENS = 6


def wanted(model: Model, case: Case) -> list[int]:
    if len(case.pieces) == 1:
        return full(model, case.ids[0], N_TOKENS)
    recompute = case.recompute if case.recompute == "all" else frozenset(case.recompute)
    return generate(model, case.ids, recompute=recompute, n_tokens=N_TOKENS)


def asked(engine, case: Case) -> list[int]:
    recompute = case.recompute if case.recompute == "all" else list(case.recompute)
    return engine.generate(case.text, n_tokens=N_TOKENS, pic={"recompute": recompute})["output_ids"]


def test_engine_and_oracle_give_the_same_tokens_whatever_is_cached(engine, model):
    drawn = list(cases(seed=1))
    mismatches = [c for c in drawn if asked(engine, c) != wanted(model, c)]
    print(f"oracle: {len(drawn)} cases, {len(mismatches)} mismatches")
    assert not mismatches, mismatches[:3]


def test_eight_at_once_give_the_tokens_of_one_at_a_time(engine, model):
    drawn = list(cases(seed=2, n_cases=N_CASES // 2))
    engine.flush()
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda c: asked(engine, c), drawn))
    mismatches = [
        case for case, answer in zip(drawn, answers, strict=True) if answer != wanted(model, case)
    ]
    print(f"oracle: {len(drawn)} cases at once, {len(mismatches)} mismatches")
    assert not mismatches, mismatches[:3]
