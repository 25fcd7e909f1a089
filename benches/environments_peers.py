"""Steps of a random policy in TextWorld and BabyAI, for `environments.py`: one JSON line on standard output.

    environments_peers.py textworld GAME.z8 [--admissible]     needs `textworld`
    environments_peers.py babyai LEVEL                         needs `minigrid`

Loading a game is not counted; resetting it for the next episode is, as it is for recoup. Without `--admissible`
the commands come from a list made beforehand, which is faster than what agents do there: asking the game
which commands it would take.
"""

import json
import random
import sys
import time

TURNS = 50
SECONDS = 2.0


def measured(reset, step):
    """Plays episodes of at most TURNS turns; `step` says whether one has ended."""
    steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.process_time() - cpu < SECONDS:
        reset()
        for _ in range(TURNS):
            steps += 1
            if step():
                break
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"steps": steps, "wall_s": wall, "cpu_s": cpu, "steps_per_s": steps / wall, "steps_per_cpu_s": steps / cpu}


def text_world(game, ask):
    import textworld

    chance = random.Random(7)
    infos = textworld.EnvInfos(admissible_commands=True)
    env = textworld.start(game, request_infos=infos)
    state, commands = env.reset(), set()
    for _ in range(500):  # what can be said somewhere in this game
        commands.update(state.admissible_commands)
        state, _, done = env.step(chance.choice(state.admissible_commands))
        if done:
            state = env.reset()
    if not ask:
        env.close()
        env = textworld.start(game)
    commands, seen = sorted(commands), {}

    def reset():
        seen["state"] = env.reset()

    def step():
        command = chance.choice(seen["state"].admissible_commands if ask else commands)
        seen["state"], _, done = env.step(command)
        return done

    return measured(reset, step)


def baby_ai(level):
    import gymnasium
    import minigrid

    if level not in gymnasium.registry:
        minigrid.register_minigrid_envs()
    env, chance, seeds = gymnasium.make(level).unwrapped, random.Random(7), iter(range(1 << 30))

    def step():
        _, _, terminated, truncated, _ = env.step(chance.randrange(7))
        return terminated or truncated

    return measured(lambda: env.reset(seed=next(seeds)), step)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    peer, what, *flags = sys.argv[1:]
    print(json.dumps(text_world(what, "--admissible" in flags) if peer == "textworld" else baby_ai(what)))
