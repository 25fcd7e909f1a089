"""recoup and the public AgentHER package on the same failed runs of an environment, with the same models behind both.

    git clone https://github.com/alphadl/AgentHER
    ~/.cache/recoup/peers/bin/python benches/hindsight_peer.py target/release/recoup --package AgentHER

AgentHER relabels with a model only, so both get the same two, which are scripts. The one that proposes gives every other run a
goal that it did achieve (recoup's own, found offline and blind, passed by the environment's verifier afterwards) and the others the same
kind of goal with one digit changed, which is false; it calls each valid at 0.9. The second judge is always right: it calls the false ones
invalid, at 0.99. Counted is how many goals of each kind are accepted. Needs pydantic, openai, rich, click, tenacity and jinja2.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hindsight import WEAK
from measuring import machine, run

HERE = Path(__file__).resolve().parent


def bent(text):
    """The text with its first digit changed; None where it has none."""
    digit = re.search(r"\d", text)
    return digit and text[:digit.start()] + str((int(digit[0]) + 3) % 10) + text[digit.end():]


class Script(ThreadingHTTPServer):
    """Both models: proposes `self.goal` with its claims, and judges it by `self.is_true`."""

    goal, claims, is_true = "", [], True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def proposal(self, question):
        """The answer to recoup's question: claims cite facts by the numbers that it lists."""
        facts = [json.loads(line) for line in question.splitlines() if line.startswith('{"fact":')]
        claims = []
        for claim in self.claims:
            said = [quote["quote"] for quote in claim["facts"]]
            cited = [fact["fact"] for fact in facts if any(fact["says"] == one or fact["says"].endswith(f"= {one}") for one in said)]
            text = claim["text"] if self.is_true or claim["text"] in self.goal else bent(claim["text"])
            claims.append({"text": text, "facts": cited})
        return {"goal": self.goal, "claims": claims, "valid": True, "confidence": 0.9, "reason": "it was done"}


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        schema = asked["response_format"]["json_schema"]["name"]
        if schema == "hindsight_goal":
            said = self.server.proposal(asked["messages"][-1]["content"])
        else:
            said = {"reason": "the number", "valid": self.server.is_true, "confidence": 0.9 if self.server.is_true else 0.99}
        message = {"role": "assistant", "content": json.dumps(said)}
        body = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [
            {"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


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


def package(folder, server):
    """AgentHER's pipeline with the script in its client's place, and its records."""
    sys.path.insert(0, str(folder))
    from agenther import models
    from agenther.pipeline import AgentHERPipeline, PipelineConfig

    class Client:
        def call_structured(self, system_prompt, user_prompt, output_schema, temperature=None):
            if output_schema is models.SecondJudgeVerdict:
                sure = 0.9 if server.is_true else 0.99
                return output_schema(is_valid=server.is_true, confidence=sure, rejection_reason="" if server.is_true else "the number")
            return output_schema(trajectory_id="t", hindsight_prompt=server.goal, is_valid_replay=True, rationale="r", confidence=0.9)

    pipeline = AgentHERPipeline(PipelineConfig(api_key="none", use_llm_detector=False, use_llm_extractor=False))
    pipeline.relabeler._llm = Client()
    return pipeline, models


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recoup", type=Path)
    parser.add_argument("--package", required=True, type=Path, help="folder of AgentHER")
    parser.add_argument("--environment", default="desk")
    parser.add_argument("--tasks", type=int, default=80, help="tasks for each policy")
    parser.add_argument("--seed", type=int, default=500)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "hindsight_peer.json")
    flags = parser.parse_args()
    counts = {name: {"true": [0, 0], "false": [0, 0]} for name in ["recoup", "agenther"]}
    refusals: dict[str, dict[str, int]] = {"true": {}, "false": {}}
    passed_over, seconds = 0, 0.0
    with tempfile.TemporaryDirectory() as folder, Script() as server:
        offline, judged = Path(folder, "offline"), Path(folder, "judged")

        def recoup(project, *words):
            output, used = run([flags.recoup.resolve(), "--project", project, "--quiet", *words])
            return output.decode().rstrip("\n").splitlines(), used

        for policy in WEAK:
            recoup(offline, "collect", "--env", flags.environment, "--policy", policy, "--tasks", str(flags.tasks), "--seed",
                   str(flags.seed))
        recoup(offline, "diagnose")
        shutil.copytree(offline, judged)
        said, used = recoup(offline, "relabel", "--blind", "--json")
        said = json.loads(said[-1])
        accepted = sum(said["accepted"].values())
        alone = {"candidates": said["candidates"], "accepted": accepted, "verified": said["verified"],
                 "runs_per_s": said["candidates"] / used["wall_s"], "runs_per_cpu_s": said["candidates"] / used["user_s"]}
        pipeline, models = package(flags.package, server)
        address = f"http://127.0.0.1:{server.server_port}/v1"
        judges = ["--judge", f"{address}#gpt-script", "--judge", f"{address}#qwen-script", "--yes"]
        number = 0
        for row in recoup(offline, "ls", "--outcome", "failure", "--all", "--json")[0]:
            record = json.loads(row)
            if "id" not in record:
                continue
            record = json.loads(recoup(offline, "show", record["id"], "--json")[0][-1])
            goals = [verdict["content"]["relabel"] for verdict in record["verdicts"] if "relabel" in verdict["content"]]
            goal = next((goal for goal in goals if goal.get("accepted") and goal.get("verified") and bent(goal["goal"])), None)
            trajectory = record["trajectory"]
            taken = steps(trajectory, models)
            if not goal or not taken:
                continue
            server.is_true = number % 2 == 0
            number += 1
            server.goal, server.claims = goal["goal"] if server.is_true else bent(goal["goal"]), goal["claims"]
            kind = "true" if server.is_true else "false"
            failed = models.FailedTrajectory(original_prompt=trajectory["task"]["goal"], steps=taken, failure_reason="check failed")
            start = time.monotonic()
            result = pipeline.process(failed)
            seconds += time.monotonic() - start
            passed_over += result.stage_reached == "failure_detection"
            answer = json.loads(recoup(judged, "relabel", trajectory["id"], "--blind", "--json", *judges)[0][-1])
            for gate, refused in answer["rejected"].items():
                refusals[kind][gate] = refusals[kind].get(gate, 0) + refused
            for name, took in [("agenther", result.success), ("recoup", answer["accepted"].get("two_judges", 0) > 0)]:
                counts[name][kind][0] += took
                counts[name][kind][1] += 1
        server.shutdown()
    print(f"recoup alone, offline and blind: {accepted} of {alone['candidates']} runs relabeled, the verifier passes "
          f"{alone['verified']['passed']} of {alone['verified']['n']}; {alone['runs_per_s']:.0f} runs/s")
    for name, count in counts.items():
        right, wrong = count["true"][0], count["false"][0]
        print(f"{name:9} accepts {right} of {count['true'][1]} true goals and {wrong} of {count['false'][1]} false ones: precision "
              f"{right / max(right + wrong, 1):.1%}")
    print(f"recoup refuses true goals by {refusals['true']}, false ones by {refusals['false']}")
    print(f"AgentHER passed {passed_over} of {number} runs over as not recoverable; {number / max(seconds, 1e-9):.0f} runs/s without "
          "any model's time")
    flags.out.write_text(json.dumps({
        "bench": "hindsight_peer", "machine": machine(), "environment": flags.environment, "seed": flags.seed, "tasks": flags.tasks,
        "offline": alone, "with_judges": counts, "recoup_refusals": refusals, "agenther_passed_over": passed_over,
        "agenther_runs_per_s": number / max(seconds, 1e-9)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
