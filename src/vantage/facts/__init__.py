"""What a run's folder says about itself, without encoding an image: settings, origin, verdict, recorded results."""

from vantage.facts.run_facts import RunFacts, facts_of

__all__ = ["RunFacts", "facts_of"]
