"""The log-sum-exp over each query's negatives, with its gradient from the same pass.

The gradient of log Σ exp(q·k/τ) with respect to q is softmax(q·k/τ) k / τ: attention with values = keys. So a pass over
the keys can accumulate it together with the sum, and nothing as large as queries × keys is kept for the backward pass.
There are several paths to the same number, chosen by what the rules declare (`vantage.negatives.rule`) and tested to be
equal:

* *table*: any rules; tiles of query rows, as many rows as the byte budget allows;
* *streaming*: only pair rules, so no key depends on another; chunks of keys, for all rows at once;
* *band*: pair rules, then one that keeps a band of ranks; tiles of rows over all keys, selected without sorting;
* *band draw*: the same, then a draw; selected in the same way, but only the drawn keys are summed;
* *subset*: a first rule that keeps the same random subset for all queries narrows the pool; the other rules take their
  own path;
* *drawn*: a first rule that draws columns without looking at cosines; only the drawn keys are scored, if that is
  cheaper;
* *shards*: any of these rules on a sharded bank.
"""

from vantage.partition.band import sum_band
from vantage.partition.band_draw import sum_band_draw
from vantage.partition.negatives import scores_of_negatives, sum_negatives
from vantage.partition.streaming import sum_streaming
from vantage.partition.table import negatives_of, sum_table

__all__ = [
    "negatives_of",
    "scores_of_negatives",
    "sum_band",
    "sum_band_draw",
    "sum_negatives",
    "sum_streaming",
    "sum_table",
]
