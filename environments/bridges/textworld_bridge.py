"""TextWorld (Côté et al. 2018): `pip install textworld`; games are made by `tw-make`.

    textworld_bridge.py GAMES

GAMES is a folder of games (`.z8` or `.ulx`, each with its `.json`) or one of them; the seed chooses among
them. The expert is the policy that TextWorld keeps beside a game: the commands that win from here.
"""

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

import textworld
from recoup_bridge import Bridge, scored, serve, shown, started, tool

ASKED = textworld.EnvInfos(
    objective=True, description=True, won=True, lost=True, score=True, max_score=True, policy_commands=True
)
TOOLS = [tool("act", "Types a command, such as `open chest` or `go east`.", command="string")]


def shortly(feedback):
    """What a game says, without the prompt and the status line behind."""
    return (feedback.rpartition("\n>")[0] or feedback).strip()


class TextWorld(Bridge):
    def __init__(self, games):
        games = Path(games)
        found = sorted(p for p in games.iterdir() if p.suffix in (".z8", ".ulx")) if games.is_dir() else [games]
        if not found:
            sys.exit(f"no games in {games}")
        self.games, self.game, self.env = found, None, None
        digest = hashlib.sha256(b"".join(hashlib.sha256(p.read_bytes()).digest() for p in found)).hexdigest()
        self.version = f"textworld {version('textworld')} games {digest[:16]}"

    def reset(self, seed, difficulty, family):
        game = self.games[seed % len(self.games)]
        if game != self.game:
            if self.env is not None:
                self.env.close()
            self.env, self.game = textworld.start(str(game), request_infos=ASKED), game
        self.state = self.env.reset()
        goal = self.state.objective.strip() or "Win the game."
        most = 2 * len(self.state.policy_commands or ()) + 50
        return started(goal, family, most, self.state.description.strip(), TOOLS, game=game.stem)

    def step(self, action):
        if "say" in action:
            return shown("", done=True)
        command = action["arguments"]["command"].replace("\n", " ")
        self.state, _, done = self.env.step(command)
        return shown(shortly(self.state.feedback), done=done)

    def verify(self):
        won, most = bool(self.state.won), self.state.max_score or 1
        return scored(won, 1.0 if won else 0.5 * min(self.state.score or 0, most) / most, won=won)

    def expert(self):
        commands = self.state.policy_commands
        if self.state.won:
            return {"say": "Done."}
        return {"tool": "act", "arguments": {"command": commands[0]}} if commands else None


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    serve(TextWorld(sys.argv[1]))
