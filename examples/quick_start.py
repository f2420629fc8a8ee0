"""Find two documents again, wherever they stand in a prompt.

    python examples/quick_start.py MODEL

Starts an engine in this process. Ends with status 1 unless both documents came from the cache and
a prompt has the same answer when all of it is cached.
"""

import argparse
import sys
from typing import Any

from hypic_engine import Engine

SEPARATOR = "<<PIC_SEP>>"
SEAM = 8
HEAD = "You are a helpful assistant."
EIFFEL = "The Eiffel Tower is in Paris, France."
FUJI = "Mount Fuji is the tallest mountain in Japan."
QUESTION = "Question: In which country is the Eiffel Tower?"
PROMPT = SEPARATOR.join([HEAD, EIFFEL, FUJI, QUESTION])
TURNED = SEPARATOR.join([HEAD, FUJI, EIFFEL, QUESTION])


def ask(engine: Engine, prompt: str, name: str) -> dict[str, Any]:
    """The answer; prints what its prompt found in the cache."""
    answer: dict[str, Any] = engine.generate(prompt, {"temperature": 0, "max_new_tokens": 16})
    meta = answer["meta_info"]
    print(f"{name}: {meta['cached_tokens']} of {meta['prompt_tokens']} tokens came from the cache")
    return answer


def main() -> int:
    """Ask five times; 0 when the documents were found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL", help="folder of a hybrid model")
    model = parser.parse_args().model
    with Engine(model_path=model, pic_enable=True, pic_seam=SEAM) as engine:
        alone = [ask(engine, document, document) for document in (EIFFEL, FUJI)]
        n_documents = sum(answer["meta_info"]["prompt_tokens"] for answer in alone)
        first = ask(engine, PROMPT, "both, behind another head and before a question")
        ask(engine, TURNED, "in another order")
        again = engine.generate(PROMPT, {"temperature": 0, "max_new_tokens": 16})
    found = first["meta_info"]["cached_tokens"]
    if found != n_documents - 2 * SEAM:
        print(f"expected {n_documents - 2 * SEAM} tokens from the cache", file=sys.stderr)
        return 1
    if again["text"] != first["text"]:
        print("the answer changed once everything was cached", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
