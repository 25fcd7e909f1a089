"""A bundled environment under plain Python: what other programs' clients are compared with."""

import sys
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parent.parent / "environments"
sys.path.insert(0, str(ENVIRONMENTS))
from recoup_env import Package  # noqa: E402


def solved(name, seed, difficulty):
    """The teacher's episode: its goal, first observation, actions and what they show."""
    package = Package(ENVIRONMENTS / name)
    task = package.generate(seed, difficulty)
    episode = package.start(task)
    first = episode.observation
    while not episode.done and len(episode.transcript) < task["max_steps"]:
        episode.step(package.expert(task, episode.state))
    assert episode.verify()["success"]
    return task["goal"], first, episode.transcript
