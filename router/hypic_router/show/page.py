"""The status page: one HTML document without scripts and without anything to load.

Pure: what it shows is handed in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..core.recent import Chosen, Recent
from ..core.workers import Fleet, State, Worker

MOST_HOT = 8
STYLE = """
:root { color-scheme: light dark; font: 16px/1.45 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
p { margin: .25rem 0; } ul { list-style: none; margin: 0; padding: 0; display: grid; gap: .6rem; }
.cards { grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); }
li { border: 1px solid #8886; border-radius: .5rem; padding: .6rem .8rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .1rem .8rem; margin: .4rem 0 0; }
dt { opacity: .75; } dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.ready { border-left: .4rem solid #2a8f4d; } .late, .draining { border-left: .4rem solid #b77d00; }
.unready { border-left: .4rem solid #c0392b; } small { opacity: .75; }
code { font-size: .85em; }
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page is made of, beside the fleet.

    Attributes:
        model: served name.
        policy: how engines are chosen.
        counts: words and numbers for the first lines, in order.
        recent: the last choices.
        now_s: the moment, by the clock of the choices.
    """

    model: str
    policy: str
    counts: Mapping[str, int]
    recent: Recent
    now_s: float


def page(fleet: Fleet, shown: Shown) -> bytes:
    """The document."""
    title = f"hypic router: {escape(shown.model)}"
    counts = [f"{name} <b>{count}</b>" for name, count in shown.counts.items()]
    engines = [_engine(worker, shown.now_s) for worker in fleet.workers]
    hot = [_hot(fleet, *one) for one in fleet.heat.hottest(MOST_HOT)]
    choices = [_choice(one, shown.now_s) for one in shown.recent.last()]
    body = [
        f"<h1>{title}</h1>",
        f"<p id=summary>{_summary(fleet, shown)}</p>",
        f"<p>{', '.join(counts)}</p>",
        _section("Engines", "cards", engines),
        _section("Hot segments", "cards", hot),
        _section("Last choices", "rows", choices),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="refresh" content="5"><title>{title}</title><style>{STYLE}</style>'
        f"</head><body>{''.join(body)}</body></html>"
    ).encode()


def _summary(fleet: Fleet, shown: Shown) -> str:
    ready = sum(worker.state is State.READY for worker in fleet.workers)
    return (
        f"<b>{ready}</b> of {len(fleet.workers)} engines ready, policy "
        f"<b>{escape(shown.policy)}</b>, found in cache <b>{_percent(shown.recent.found)}</b> of "
        f"the prompt tokens of the last {len(shown.recent.chosen)} requests"
    )


def _section(title: str, kind: str, items: Sequence[str]) -> str:
    rows = "".join(items) or "<li><small>none</small></li>"
    return f"<h2>{title}</h2><ul class={kind}>{rows}</ul>"


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs)
    return f"<dl>{rows}</dl>"


def _engine(worker: Worker, now_s: float) -> str:
    held = worker.residency
    facts = [
        ("requests", worker.load.requests),
        ("work ahead", f"{worker.load.tokens:,.0f} tokens"),
        ("segments held", f"{len(held.keys):,}"),
        ("tokens held", f"{held.n_tokens:,}"),
        ("breaker", worker.breaker.state(now_s)),
    ]
    reason = f"<br><small>{escape(worker.reason)}</small>" if worker.reason else ""
    state = worker.state.value
    name = f"<b>{escape(worker.at.name)}</b> {state}{reason}"
    return f"<li class={state}>{name}{_pairs(facts)}</li>"


def _hot(fleet: Fleet, digest: str, share: float) -> str:
    holders = sum(worker.residency.held(digest) is not None for worker in fleet.workers)
    facts = [
        ("asked for by", f"{_percent(share)} of requests"),
        ("held by", f"{holders} of {len(fleet.workers)}"),
    ]
    return f"<li><code>{escape(digest[:12])}</code>{_pairs(facts)}</li>"


def _choice(chosen: Chosen, now_s: float) -> str:
    ago = max(now_s - chosen.at_s, 0.0)
    return (
        f"<li><b>{escape(chosen.engine)}</b> <small>{ago:.0f} s ago</small><br>"
        f"{escape(chosen.label)}: {escape(chosen.reason)}</li>"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
