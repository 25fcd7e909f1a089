"""The public AgentHER package on the failed runs of a project, with a scripted model in place of its client.

    python3 benches/hindsight_peer.py target/debug/recoup --project PROJECT --package FOLDER_OF_AGENTHER

It relabels with a model only, so the script plays one that proposes a false goal: recoup's accepted goal with one digit
changed, called valid at 0.9. Its second judge, asked about that goal, rightly says that it is invalid, and is sure (0.99).
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path


def shown(recoup, project, run):
    command = [recoup, "--project", project, "show", run, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout.splitlines()[-1])


def bent(goal):
    """The goal with its first digit changed; None where it has none."""
    digit = re.search(r"\d", goal)
    return digit and goal[:digit.start()] + str((int(digit[0]) + 3) % 10) + goal[digit.end():]


def steps(trajectory, models):
    """Calls and their answers, in order, as the package wants them."""
    found, waiting = [], []
    for node in trajectory["nodes"]:
        for part in node["parts"]:
            if part["type"] == "tool_call":
                try:
                    arguments = json.loads(part["arguments_raw"])
                except ValueError:
                    arguments = {}
                waiting.append((part["name"], arguments if isinstance(arguments, dict) else {}))
            elif part["type"] == "tool_result" and waiting:
                name, arguments = waiting.pop(0)
                text = "\n".join(inner.get("text", "") for inner in part["parts"])
                found.append(models.AgentStep(thought="", action_name=name, action_input=arguments, observation=text))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recoup")
    parser.add_argument("--project", required=True)
    parser.add_argument("--package", required=True, type=Path)
    parser.add_argument("--limit", type=int, default=100)
    flags = parser.parse_args()
    sys.path.insert(0, str(flags.package))
    from agenther import models
    from agenther.pipeline import AgentHERPipeline, PipelineConfig

    class Script:
        goal = ""

        def call_structured(self, system_prompt, user_prompt, output_schema, temperature=None):
            if output_schema is models.SecondJudgeVerdict:
                return output_schema(is_valid=False, confidence=0.99, rejection_reason="the number is wrong")
            return output_schema(trajectory_id="t", hindsight_prompt=self.goal, is_valid_replay=True, rationale="r", confidence=0.9)

    script = Script()
    pipeline = AgentHERPipeline(PipelineConfig(api_key="none", use_llm_detector=False, use_llm_extractor=False))
    pipeline.relabeler._llm = script
    rows = subprocess.run([flags.recoup, "--project", flags.project, "ls", "--outcome", "failure", "--all", "--json"],
                          capture_output=True, check=True).stdout.splitlines()
    tried = accepted = stopped = 0
    wall = 0.0
    for row in rows:
        if tried >= flags.limit:
            break
        run = json.loads(row).get("id")
        if not run:
            continue
        record = shown(flags.recoup, flags.project, run)
        goals = [verdict["content"]["relabel"] for verdict in record["verdicts"] if "relabel" in verdict["content"]]
        goal = next((bent(goal["goal"]) for goal in goals if goal.get("accepted")), None)
        trajectory = record["trajectory"]
        taken = steps(trajectory, models)
        if not goal or not taken:
            continue
        script.goal = goal
        failed = models.FailedTrajectory(original_prompt=trajectory["task"]["goal"], steps=taken, failure_reason="check failed")
        start = time.monotonic()
        result = pipeline.process(failed)
        wall += time.monotonic() - start
        tried += 1
        accepted += result.success
        stopped += result.stage_reached == "failure_detection"
    print(f"{accepted} of {tried} false goals accepted, {stopped} runs passed over as not recoverable; "
          f"{tried / max(wall, 1e-9):.0f} runs/s without any model's time")


if __name__ == "__main__":
    main()
