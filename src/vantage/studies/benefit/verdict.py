"""The verdict in sentences."""

from vantage.studies.benefit.result import BenefitResult, Gap
from vantage.studies.benefit.ways import FROZEN, PIXELS, RANDOM, SCRATCH, TUNED, is_pretrained

__all__ = ["markdown", "sentences"]


def sentences(result: BenefitResult) -> list[str]:
    """The results in sentences; the first one answers the question, for the fewest and for the most labels.

    A difference counts as seen if its 95 % interval does not contain 0; see `Gap.of`.
    """
    return [_benefit(result), _frozen(result), *_better_without(result), *_others(result), *_split(result)]


def _ends(result: BenefitResult) -> list[int]:
    """The smallest and the largest number of labels."""
    return list(dict.fromkeys((result.labels[0], result.labels[-1])))


def _with(result: BenefitResult, labels: int) -> str:
    share = result.share(labels)
    return f"with all {labels:,} labels" if share == 1 else f"with {labels:,} labels ({100 * share:g} %)"


def _benefit(result: BenefitResult) -> str:
    parts = []
    for labels in _ends(result):
        gap = result.gap(TUNED, SCRATCH, labels)
        points = gap.words.replace(" [", " points [", 1) if not parts else gap.words
        if gap.low > 0:
            words = f"pretraining adds {points} over training from scratch"
        elif gap.high < 0:
            words = f"pretraining costs accuracy: {points} against training from scratch"
        else:
            words = f"pretraining adds {points} over training from scratch: no difference was seen"
        parts.append(f"{_with(result, labels)}, {words}")
    return _sentence("; ".join(parts))


def _frozen(result: BenefitResult) -> str:
    parts = [
        f"{_with(result, labels)} {'it' if number else 'the run'} is"
        f" {_comparison(result.gap(FROZEN, RANDOM, labels), 'a random network')} and"
        f" {_comparison(result.gap(FROZEN, PIXELS, labels), 'raw pixels')}"
        for number, labels in enumerate(_ends(result))
    ]
    return f"Frozen, under a linear classifier, {'; '.join(parts)}."


def _comparison(gap: Gap, other: str) -> str:
    if gap.low > 0:
        return f"{gap.words} above {other}"
    if gap.high < 0:
        return f"{gap.reverse.words} below {other}"
    return f"not clearly different from {other} ({gap.words})"


def _better_without(result: BenefitResult) -> list[str]:
    """A sentence about the numbers of labels at which the best way without pretraining matches or beats the run."""
    parts = []
    for labels in result.labels:
        other_way = max(
            (way for way in result.ways if not is_pretrained(way)), key=lambda way: result.mean(way, labels)
        )
        pretrained_way = max((TUNED, FROZEN), key=lambda way: result.mean(way, labels))
        if result.mean(other_way, labels) >= result.mean(pretrained_way, labels):
            numbers = f"{result.mean(other_way, labels):.1f} % against {result.mean(pretrained_way, labels):.1f} %"
            parts.append(f"{_with(result, labels)}, {other_way}: {numbers}")
    return (
        [_sentence(f"without pretraining, one way is as good as the run or better: {'; '.join(parts)}")]
        if parts
        else []
    )


def _others(result: BenefitResult) -> list[str]:
    lines = []
    for way in result.ways:
        if is_pretrained(way) and way not in (TUNED, FROZEN):
            run_way = TUNED if way.endswith("fine-tuned") else FROZEN
            parts = [f"{_with(result, labels)} {_comparison(result.gap(way, run_way, labels), run_way)}"
                     for labels in _ends(result)]  # fmt: skip
            lines.append(f"{way}: {'; '.join(parts)}.")
    return lines


def _percent(part: int, whole: int) -> str:
    """A share such as 1.4 %; "less than 0.1 %" if it would be rounded to 0."""
    return "less than 0.1 %" if 0 < part / whole < 0.0005 else f"{100 * part / whole:.1f} %"


def _split(result: BenefitResult) -> list[str]:
    images = result.images
    count = len(images.leaks)
    verb = "is a near-duplicate" if count == 1 else "are near-duplicates"
    line = f"{count:,} of {images.test:,} test images ({_percent(count, images.test)}) {verb} of training images"
    if 2 * count > images.test:
        line += ": they are copies, or the run's features mean nothing"
    if 0 < count < images.test - 1:
        gaps = [f"{result.gap(TUNED, SCRATCH, labels, leaks=False).words} {_with(result, labels)}"
                for labels in _ends(result)]  # fmt: skip
        line += f"; without {'it' if count == 1 else 'them'} pretraining adds {', '.join(gaps)}"
    lines = [f"{line}."]
    if images.in_pretraining:
        lines.append(f"The run was pretrained on {images.in_pretraining:,} of the test images, without their labels.")
    return lines


def markdown(result: BenefitResult) -> str:
    """The verdict, the table, and how they were made."""
    first, *others = sentences(result)
    how = "\n".join(f"- {line}" for line in _how(result))
    return "\n\n".join([f"**{first}**", " ".join(others), result.table().markdown(), how]) + "\n"


def _how(result: BenefitResult) -> list[str]:
    budget, images = result.budget, result.images
    seeds = ", ".join(str(seed) for seed in sorted({cell.seed for cell in result.classifiers}))
    rate, penalty = _choice(budget.learning_rates, "a fifth"), _choice(budget.penalties, "a tenth")
    return [
        f"Top-1 in percent, mean ± standard deviation over seeds {seeds}. Brackets are 95 % intervals of the"
        " differences, paired by subset and by test image.",
        f"{images.train:,} training images; {images.test:,} test images ({images.split}), whose labels only score.",
        f"Fine-tuned and from scratch: {budget.epochs} epochs or more, at least {10 * budget.epochs} steps, batches"
        f" of {budget.batch_size}, the same crops; the learning rate is {rate}.",
        f"Frozen and raw pixels: logistic regression (linear-cached); the penalty is {penalty}.",
    ]


def _choice(values: tuple[float, ...], share: str) -> str:
    """How a value is chosen, if there is a choice."""
    words = ", ".join(f"{one:g}" for one in values)
    return words if len(values) == 1 else f"the best of {words} on {share} held out of each subset"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
