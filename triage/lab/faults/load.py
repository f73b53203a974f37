"""Faults of demand and of limits: more users, longer prompts, too little room."""

import random

from triage.lab.faults.fault import Fault, Ground
from triage.lab.world.hop import Balance
from triage.lab.world.spec import ServiceSpec


def _surge(ground: Ground, severity: float, _: random.Random) -> None:
    ground.more_users(1.0 + 5.0 * severity)


def _sequences(ground: Ground, severity: float, _: random.Random) -> None:
    for replica in ground.replicas:
        most = replica.spec.settings.max_num_seqs
        ground.limits(replica, max_num_seqs=max(round(most * (1.0 - severity)), 1))


def _kv(ground: Ground, severity: float, _: random.Random) -> None:
    """A rollout with less memory for the cache; engines refuse to start with less than one whole context."""
    for replica in ground.replicas:
        settings = replica.spec.settings
        least = settings.max_model_len // settings.block_size + 1
        blocks = least + round((settings.num_blocks - least) * (1.0 - severity) ** 2)
        ground.limits(replica, num_blocks=blocks)
        replica.restart(ground.now)


def _prompts(ground: Ground, severity: float, _: random.Random) -> None:
    ground.habits(
        opening=1.0 + 40.0 * severity if ground.service.spec.shape.opening.median < 1000 else 1 + 4 * severity
    )


def _context(ground: Ground, severity: float, _: random.Random) -> None:
    """The operator halves the context again and again; applications do not know."""
    for replica in ground.replicas:
        ground.limits(replica, max_model_len=round(replica.spec.settings.max_model_len * (1.0 - 0.97 * severity)))


def _restart(ground: Ground, severity: float, rng: random.Random) -> None:
    for replica in ground.some(rng, severity):
        replica.restart(ground.now)


def _affinity(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(loose=severity)


def _template(ground: Ground, severity: float, _: random.Random) -> None:
    ground.habits(stamped=severity)


def _reasoning(ground: Ground, severity: float, rng: random.Random) -> None:
    ground.habits(reasoning=1.0 + 12.0 * severity, hides=rng.random() < 0.5)


def _burst(ground: Ground, severity: float, _: random.Random) -> None:
    ground.more_users(1.0 + 0.4 * severity)


def _long_answers(ground: Ground, severity: float, _: random.Random) -> None:
    ground.habits(visible=1.0 + 2.0 * severity)


def _nothing(ground: Ground, severity: float, rng: random.Random) -> None:
    """All is well."""


def _by_session(spec: ServiceSpec) -> bool:
    return spec.hop.balance is Balance.SESSION


FINE = (
    Fault("healthy", "nothing is wrong", _nothing),
    Fault("burst", "some more users than usual, and room for them", _burst),
    Fault("long-answers", "longer answers than usual", _long_answers),
)

LOAD = (
    Fault("load-surge", "many more users than the fleet can serve", _surge),
    Fault("sequence-limit", "the limit on sequences that run at once is too low", _sequences),
    Fault("kv-small", "a rollout left too little memory for the KV cache", _kv),
    Fault("long-prompts", "prompts become much longer", _prompts),
    Fault("context-limit", "a lowered context limit refuses long conversations", _context),
    Fault("cache-restart", "restarted engines have lost their prefix caches", _restart),
    Fault("affinity-lost", "the router no longer sends a session to its replica", _affinity, _by_session),
    Fault("template-change", "a new prompt template begins with a time stamp", _template),
    Fault("reasoning-raised", "reasoning effort was raised", _reasoning),
)
