"""The hundred classes of JCL's ablations, as the supplement of arXiv 2009.14776 (section 4) lists them."""

import re

from vantage.data import IMAGENET_100


def test_they_are_a_hundred_synsets_in_the_order_of_the_paper() -> None:
    assert len(IMAGENET_100) == len(set(IMAGENET_100)) == 100
    assert all(re.fullmatch(r"n\d{8}", name) for name in IMAGENET_100)
    assert (IMAGENET_100[0], IMAGENET_100[-1]) == ("n02869837", "n02090622")
    assert sum(int(name[1:]) for name in IMAGENET_100) == 338_296_959  # of the paper's list
