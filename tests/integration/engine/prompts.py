"""Documents and prompts for engines, drawn from a seed; one character is one token."""

import random

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.ABCDEFGHIJ0123456789"
SEPARATOR = "<<PIC_SEP>>"


def text(dice: random.Random, n_tokens: int) -> str:
    return "".join(dice.choices(ALPHABET, k=n_tokens))


def documents(seed: int, *lengths: int) -> list[str]:
    dice = random.Random(seed)
    return [text(dice, length) for length in lengths]


def joined(*pieces: str) -> str:
    return SEPARATOR.join(pieces)
