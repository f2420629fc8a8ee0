from hypic_operator.core import serving
from hypic_operator.core.serving import Answer, Record

TOKEN = Answer(token=True, reason="TokenReceived", message="got one")
NONE = Answer(token=False, reason="NoAnswer", message="no answer")
PODS = frozenset({"engine-0", "router-0"})


def _after(*answers: Answer) -> Record:
    record = Record()
    for answer in answers:
        record = record.with_answer(answer, now_s=100.0, ready=PODS)
    return record


def _due(record: Record, *, now_s: float, ready: frozenset[str] = PODS) -> float:
    return serving.due_in_s(record, ready=ready, now_s=now_s, period_s=60.0)


def test_the_first_request_is_sent_at_once() -> None:
    assert _due(Record(), now_s=5.0) == 0.0


def test_at_rest_it_is_sent_in_its_period() -> None:
    assert _due(_after(TOKEN), now_s=110.0) == 50.0
    assert _due(_after(TOKEN), now_s=170.0) == 0.0


def test_after_a_failure_it_is_sent_soon() -> None:
    assert _due(_after(NONE), now_s=100.5) == serving.RETRY_S - 0.5


def test_when_other_pods_are_ready_it_is_sent_at_once() -> None:
    assert _due(_after(TOKEN), now_s=100.0, ready=PODS | {"engine-1"}) == 0.0


def test_nothing_is_known_before_the_first_answer() -> None:
    assert serving.verdict(Record(), served_before=True) is None


def test_a_token_counts_at_once() -> None:
    assert serving.verdict(_after(NONE, TOKEN), served_before=False) is TOKEN


def test_one_failure_after_tokens_does_not_count_and_two_do() -> None:
    assert serving.verdict(_after(TOKEN, NONE), served_before=True) is None
    assert serving.verdict(_after(TOKEN, NONE, NONE), served_before=True) is NONE


def test_one_failure_counts_where_nothing_was_served() -> None:
    assert serving.verdict(_after(NONE), served_before=False) is NONE
