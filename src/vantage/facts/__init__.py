"""What a run's folder records about the run, without encoding an image: settings, origin, verdict, recorded results."""

from vantage.facts.run_facts import RunFacts, facts_of

__all__ = ["RunFacts", "facts_of"]
