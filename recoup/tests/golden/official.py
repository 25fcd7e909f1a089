"""Golden values of the published scorer of Who&When: `official.json`.

    git clone https://github.com/ag2ai/Agents_Failure_Attribution
    git -C Agents_Failure_Attribution checkout f4d2b6da464a826580e59b3a0eae15ea2d642d7c
    python official.py Agents_Failure_Attribution/Automated_FA/evaluate.py > official.json

The scorer itself is executed, on labels and prediction logs that are drawn here: steps that are pieces of
others, agents that its pattern cuts, blocks it cannot read, files that nobody predicts.
"""

import contextlib
import importlib.util
import io
import json
import os
import random
import sys
import tempfile

AGENTS = ["Expert", "Validation_Expert", "WebSurfer", "File-Surfer", "Über_Agent", "Data Analyst", "A"]
STEPS = ["0", "1", "2", "3", "7", "11", "12", "21", "30", "112"]


def load(path):
    spec = importlib.util.spec_from_file_location("published", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def block(draw, name):
    agent, step = draw.choice(AGENTS), draw.choice(STEPS)
    form = draw.randrange(8)
    if form == 0:
        return f"Prediction for {name}:\nI cannot say which agent failed.\n"
    if form == 1:
        return f"Prediction for {name}:\nAgent Name: {agent}\nReason: none\n"
    if form == 2:
        return f"Prediction for {name}: step number: 0{step}; agent name:\n  {agent}\n"
    return f"Prediction for {name}:\nAgent Name: {agent}\nStep Number: {step}\nReason for Mistake: it is wrong\n"


def case(published, draw):
    files = {}
    for number in range(draw.randrange(1, 30)):
        label = {"mistake_agent": draw.choice(AGENTS), "mistake_step": draw.choice(STEPS)}
        if draw.randrange(10) == 0:
            del label[draw.choice(sorted(label))]
        files[f"{number}.json"] = label
    log = "==== results ====\n"
    for name in files:
        if draw.randrange(6) or name == "0.json":
            log += block(draw, name)
        if draw.randrange(12) == 0:
            log += block(draw, name)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for name, label in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(label, file)
        log_file = os.path.join(folder, "log.txt")
        with open(log_file, "w", encoding="utf-8") as file:
            file.write(log)
        agent, step = published.evaluate_accuracy(published.read_predictions(log_file), folder, len(files))
    return {"labels": files, "log": log, "agent": agent, "step": step}


def main():
    published, draw = load(sys.argv[1]), random.Random(20261129)
    cases = [case(published, draw) for _ in range(30)]
    print("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in cases) + "\n]")


if __name__ == "__main__":
    main()
