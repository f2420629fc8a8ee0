"""Four documents, the orders they are asked about in, and the prompts that come of it.

Pure: knows neither cluster nor network. The tiny model's tokenizer makes one token of each byte, so
that lengths in characters are lengths in tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SEPARATOR = "<<PIC_SEP>>"

LIGHTHOUSE = """\
A lighthouse has to be seen far away with a lamp that is small. Before 1820 most towers burned \
oil in front of polished mirrors, and half of the light was lost in the metal. Augustin \
Fresnel, a French engineer of roads, proposed to bend the light instead. His lens is a ring of \
prisms around the flame: each prism is thin, and together they do what a solid piece of glass \
of several tons would do. The first of them was lit on the tower of Cordouan, at the mouth of \
the Gironde, in 1823, and sailors reported it from more than thirty kilometres. Keepers wound \
up a clockwork every few hours that turned the lens, so that each light had a rhythm of its \
own: a captain counted the seconds between two flashes and knew which coast he was looking at. \
The heaviest lenses floated in a trough of mercury, and a finger was enough to turn them.
"""

TEA = """\
Green, oolong and black tea come from the leaves of one plant, Camellia sinensis. What differs \
is how long the leaf may react with air after it was picked. For green tea the leaves are \
heated within hours, in a pan in China or with steam in Japan; the heat stops the enzymes and \
the leaf stays green. For black tea the leaves wither for most of a day until they are soft, \
then they are rolled, which breaks their cells, and left in a cool and humid room. There they \
turn brown like a cut apple, and new flavours form. Oolong stands between the two: its leaves \
are shaken in baskets so that only the edges bruise. A picker takes the bud and the two leaves \
below it, and about four kilograms of them make one kilogram of dry tea. Water for green tea \
should be well below boiling, because hotter water draws out what is bitter.
"""

LOCK = """\
A canal is level, the land is not, so boats climb in locks. A lock is a chamber with a gate at \
each end. A boat that goes up enters at the lower level, the lower gates close behind it, and \
small doors called paddles let water in from above until the chamber is full. Nothing is \
pumped: the upper reach gives the water, and each passage costs it one chamber, which on an \
English narrow canal is about one hundred thousand litres. The gates meet in a shallow V that \
points upstream, an idea that Leonardo da Vinci drew for the canals of Milan; the water itself \
presses them shut, and nobody can open them before both sides are level. Where many locks \
follow one another they share gates and form a staircase. At Caen Hill in Wiltshire twenty- \
nine locks lift boats by seventy-two metres, and a crew needs the better part of a day for \
them.
"""

BEES = """\
A honey bee that has found flowers tells the others where they are by dancing. She does it on \
the comb, in the dark, and the bees beside her follow with their antennae. If the flowers are \
near, she runs in a circle. If they are farther than about a hundred metres, she runs a short \
straight line, shaking her body, then returns in an arc and runs the line again. The length of \
the line gives the distance: one second of shaking means roughly one kilometre. Its direction \
gives the way. Straight up on the comb stands for the direction of the sun, and a line thirty \
degrees to the right of that means flowers thirty degrees to the right of the sun. As the sun \
moves, the dance turns with it. Karl von Frisch worked this out with glass hives and painted \
bees over twenty years, and it brought him a Nobel prize in 1973.
"""

DOCUMENTS: Mapping[str, str] = MappingProxyType(
    {"A": LIGHTHOUSE, "B": TEA, "C": LOCK, "D": BEES},
)


@dataclass(frozen=True, slots=True)
class Question:
    """One request of the demo.

    Attributes:
        order: letters of the documents, as they stand in the prompt.
        text: what is asked after them; never cached.
    """

    order: str
    text: str

    @property
    def prompt(self) -> str:
        """The documents and the question, cut by the separator."""
        return SEPARATOR.join([*(DOCUMENTS[letter] for letter in self.order), self.text])

    @property
    def n_document_tokens(self) -> int:
        """Tokens of the documents in it."""
        return sum(len(DOCUMENTS[letter].encode()) for letter in self.order)

    @property
    def n_tokens(self) -> int:
        """Tokens of the whole prompt; the separators are none."""
        return self.n_document_tokens + len(self.text.encode())


QUESTIONS = (
    Question("ABCD", "Question: Who proposed to bend the light of a lighthouse?\nAnswer:"),
    Question("DCBA", "Question: What does the length of a bee's straight run tell?\nAnswer:"),
    Question("CADB", "Question: How much water does one passage of a lock cost?\nAnswer:"),
    Question("BDAC", "Question: Why is water for green tea not boiling?\nAnswer:"),
    Question("DB", "Question: What do the dance and the tea have to do with the sun?\nAnswer:"),
    Question("ACB", "Question: Which of the three was known to Leonardo da Vinci?\nAnswer:"),
)
