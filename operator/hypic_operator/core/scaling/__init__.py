"""How many engines a role is to have for the load there is; a decision and its reasons.

Does not measure and does not write; keeps nothing.
"""

from .decide import Bounds, Decision, decide, remembered, wanted
from .load import Load, Recommendation

__all__ = ["Bounds", "Decision", "Load", "Recommendation", "decide", "remembered", "wanted"]
