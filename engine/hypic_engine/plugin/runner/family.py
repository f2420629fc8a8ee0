"""What the forward pass asks of a family of linear attention; one class of `runner` each.

A protocol: `forward` calls it once a layer and knows nothing of states.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from .plan import ForwardPlan


@dataclass(frozen=True, slots=True)
class Inputs:
    """A linear layer's inputs as SGLang passes them: projected together or one by one.

    Attributes:
        mixed_qkv: [N, D] before a convolution, with a and b [N, HV] beside it.
        a: decay inputs.
        b: write-strength inputs.
        q: [N, H, DK], ready to use; k alike, v [N, H, DV].
        k: keys.
        v: values.
    """

    mixed_qkv: Any = None
    a: Any = None
    b: Any = None
    q: Any = None
    k: Any = None
    v: Any = None


class LinearAttention(Protocol):
    """One family's linear layers over the operator pool."""

    def extend(self, plan: ForwardPlan, layer: Any, inputs: Inputs) -> Tensor:
        """Outputs of one layer of a planned batch, in the shape that the stock backend returns.

        Leaves each row's state in SGLang's pool and the operators of kept rows in ours.
        """
        ...
