from local.demo.documents import DOCUMENTS, QUESTIONS, SEPARATOR


def test_a_documents_length_in_characters_is_its_length_in_tokens():
    for text in DOCUMENTS.values():
        assert text.isascii()
        assert 600 <= len(text) <= 1200
        assert SEPARATOR not in text


def test_the_first_order_holds_every_document_and_later_ones_are_all_different():
    assert set(QUESTIONS[0].order) == set(DOCUMENTS)
    assert len({question.order for question in QUESTIONS}) == len(QUESTIONS) >= 5


def test_no_two_orders_share_a_beginning_of_two_documents_that_a_prefix_cache_could_use():
    assert len({question.order[:2] for question in QUESTIONS}) == len(QUESTIONS)


def test_a_prompt_is_its_documents_and_its_question():
    for question in QUESTIONS:
        *documents, asked = question.prompt.split(SEPARATOR)
        assert documents == [DOCUMENTS[letter] for letter in question.order]
        assert asked == question.text
        assert question.n_tokens == len("".join([*documents, asked]))
        assert question.n_document_tokens == len("".join(documents))
