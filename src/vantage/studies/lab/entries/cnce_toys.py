"""CNCE's toys, and the entries for its appendices and figures (Wu et al., arXiv 2010.02037)."""

# fmt: off

from vantage.studies.lab.entries.cnce_annealing import FIGURE_2B
from vantage.studies.lab.entries.cnce_clusters import TABLE_6
from vantage.studies.lab.entries.cnce_lesions import FIGURE_2A
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason
from vantage.studies.lab.experiments.toys import NegativeSpread, TrainedCritics, above
from vantage.studies.lab.judging.predicates import Above, Beats, Order
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

NCE = "NCE"
_LOWER = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0)
_MEAN = (0.01345, 0.01241, 0.00220, 7.29e-5, 1.67e-5, 5.87e-6, 1.97e-6)
_SPREAD = (0.001, 3e-4, 1e-4, 9e-6, 2e-6, 1e-6, 4e-6)
_CRITICS = Cell(
    "critics",
    TrainedCritics(),
    paper={
        **{above(lower): value for lower, value in zip(_LOWER, _MEAN, strict=True)},
        **{f"{above(lower)}, SD": value for lower, value in zip(_LOWER, _SPREAD, strict=True)},
        "information": 0.02041,
    },
)


def _of(*names: str) -> tuple[str, ...]:
    return tuple(f"critics @ {name}" for name in names)


_FALLING = _of(*(above(lower) for lower in reversed(_LOWER)))
_TRAINING = ", training pairs"


def _estimates(pairs: str = "") -> dict[str, float]:
    """The estimates on some pairs; the x position of each is its percentile."""
    return {f"critics @ {above(lower)}{pairs}": lower for lower in _LOWER}


TABLE_5 = Entry(
    "cnce-table-5",
    "CNCE",
    "Table 5",
    "estimates of a known information (.02041 nats) by percentile",
    cells=(_CRITICS,),
    claims=(
        Claim("1", "CNCE ≤ NCE ≤ the information, on held-out pairs", "Theorem 3.1",
            (Order(_of("w 10", NCE, "information")),), (NCE,), NCE),
        Claim("1, training pairs", "CNCE ≤ NCE ≤ the information, on training pairs", "Appendix B",
            (Order(_of(f"w 10{_TRAINING}", f"{NCE}{_TRAINING}", "information")),), (), NCE,
            reasons=(
                Reason("critics fit their training pairs: on these their estimate is above that on new pairs",
                    Beats(f"critics @ {NCE}{_TRAINING}", f"critics @ {NCE}"), NCE),
                Reason("the percentile: CNCE is below NCE on training pairs too",
                    Beats(f"critics @ {NCE}{_TRAINING}", f"critics @ w 10{_TRAINING}"), NCE, True),
            )),
        Claim("2", "estimates fall with the percentile", "Appendix B", (Order(_FALLING),), (NCE,), NCE),
        Claim("3", "NCE is .0135 ± .003", "Table 5", (Above(_of(NCE)[0], 0.0105), Above(_of(NCE)[0], 0.0165,
            below=True)), (NCE,), NCE),
        Claim("3, w 10", "above the 10th percentile it is .0124 ± .002", "Table 5", (Above(_of("w 10")[0], 0.0104),
            Above(_of("w 10")[0], 0.0144, below=True)), (NCE,), NCE,
            note="no critic can reach more than .0075 on new pairs",
            reasons=(
                Reason("pairs that the critic was not trained on: on its training pairs it is below .0104 too",
                    Above(_of(f"w 10{_TRAINING}")[0], 0.0104, below=True), NCE, True),
                Reason("critics that learn nothing: they are above 0", Above(_of("w 10")[0], 0.0), NCE, True),
            )),
        Claim("4", "the spread over seeds is below NCE's at every percentile", "values",
            tuple(Beats(f"critics @ {NCE}, SD", f"critics @ {above(lower)}, SD") for lower in _LOWER[1:]), (NCE,), NCE,
            note="by the distances of the seeds from their median"),
    ),
    commands=("vantage analyse trained-toy --repetitions 5 --out toy",),
    panels=(
        Panel(NCE, {"held-out pairs": _estimates(), "training pairs": _estimates(_TRAINING)},
            "percentile of the nearest negatives", y_label="estimate (nats)", paper_columns=("estimate",),
            paper_shares_axes=True, reference_lines=_of("information")),
    ),
    scale="the paper's own: 2,000 pairs, 100 epochs, 5 layers of width 10; Adam .003, since .03 collapses",
)

_SPREADS = Cell("optimal critic", NegativeSpread())


def _spread(quantity: str, lower: float, negatives: int) -> str:
    return f"optimal critic @ {quantity}, {above(lower)}, k {negatives}"


_K = (16, 64, 256, 1024)

APPENDIX_C = Entry(
    "cnce-appendix-c",
    "CNCE",
    "Appendix C",
    "bias and variance of the estimates, by number and percentile of the negatives",
    cells=(_SPREADS,),
    claims=(
        Claim("1", "CNCE's bias is at least as large as NCE's", "Theorem 3.2",
            tuple(Beats(_spread("bias", 90.0, k), _spread("bias", 0.0, k)) for k in _K), (), "bias, NCE, k 16"),
        Claim("2", "the variance over the negatives of a pair falls with the percentile", "Theorem 3.2",
            tuple(Order(tuple(_spread("variance", w, k) for w in (90.0, 50.0, 0.0))) for k in _K), (),
            "bias, NCE, k 16"),
        Claim("3", "the variance falls with the number of negatives", "Appendix C",
            tuple(Order(tuple(_spread("variance", w, k) for k in reversed(_K))) for w in (0.0, 50.0, 90.0)), (),
            "bias, NCE, k 16"),
        Claim("3, bias", "NCE's bias falls with the number of negatives", "Appendix C",
            (Beats(_spread("bias", 0.0, 16), _spread("bias", 0.0, 1024)),), (), "bias, NCE, k 16"),
        Claim("a", "the whole variance, pairs included, falls with the percentile", "ours",
            tuple(Beats(_spread("whole variance", 0.0, k), _spread("whole variance", 90.0, k)) for k in _K), (),
            "bias, NCE, k 16", note="not what the theorem says",
            reasons=(
                Reason("near negatives depend on the pair, so the variance between pairs grows by more than the"
                    " variance over the negatives falls",
                    Gains((_spread("whole variance", 90.0, 16), _spread("variance", 90.0, 16)),
                    (_spread("whole variance", 0.0, 16), _spread("variance", 0.0, 16))), "bias, NCE, k 16"),
                Reason("few negatives: the result is the same with 1,024", Beats(_spread("whole variance", 90.0, 1024),
                    _spread("whole variance", 0.0, 1024)), "bias, NCE, k 16", True),
            )),
    ),
    commands=("vantage analyse spread-toy --out toy",),
    panels=tuple(
        Panel("bias, NCE, k 16", {above(w): {_spread(quantity, w, k): k for k in _K} for w in (0.0, 50.0, 90.0)},
            "negatives k", y_label=name, log=quantity != "whole variance")
        for quantity, name in (("bias", "bias (nats)"), ("variance", "variance over negatives (nats²)"),
            ("whole variance", "whole variance (nats²)"))
    ),
    scale="the Gaussian toy with its optimal critic: 500 pairs, 16 draws of the negatives",
)

ENTRIES = (TABLE_5, TABLE_6, FIGURE_2A, FIGURE_2B, APPENDIX_C)
"""CNCE's toys, combinations and figures, in the paper's order."""
