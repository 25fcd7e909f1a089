"""Writes runs the way seven harnesses do. Each writer returns {file name: text}."""

import uuid

from .spelling import as_text, call_id, chat, digest, function_call, moment, native_id, pretty, session_id


def openai_chat(name, runs, system, tools):
    """One run a line: `messages`, `tools`, and the score where the run has one."""
    lines = []
    for run in runs:
        row = {"id": native_id(run), "task_id": run.task, "trial": run.trial, "model": run.model}
        if run.outcome != "unknown":
            row["success"] = run.outcome == "success"
        row |= {"messages": chat(run, system), "tools": tools}
        lines.append(as_text(row))
    return {name: "\n".join(lines) + "\n"}


def tau_bench(name, runs, system, tasks):
    """One array; the score under `reward`, null `reward_info` where the harness stopped the run."""
    results = []
    for run in runs:
        user_id, instruction, gold = tasks[int(run.task)]
        reward = 1.0 if run.outcome == "success" else 0.0
        actions = [{"name": action, "kwargs": kwargs} for action, kwargs in gold]
        info = {
            "task": {"user_id": user_id, "actions": actions, "instruction": instruction, "outputs": []},
            "reward_info": None if run.ended == "max_steps" else {
                "reward": reward, "info": {"r_actions": reward, "gt_data_hash": digest("gold", run.task)},
                "actions": actions},
            "source": "user", "user_cost": 0.0021,
        }
        result = {"task_id": int(run.task), "trial": run.trial, "reward": reward, "info": info}
        # Call ids that repeat within one run, as real files have them.
        result["traj"] = chat(run, system, identify=lambda made: f"call_{made % 3}")
        results.append(result)
    return {name: pretty(results)}


def tau2(name, runs, system, tasks):
    """One experiment with its tasks and simulations; the harness's own word for each end."""
    simulations = []
    for run in runs:
        messages, pending = [], []
        for index, turn in enumerate(run.turns):
            message = {"role": turn.role, "content": turn.text or None, "timestamp": moment(index)}
            if turn.calls:
                pending = [call_id(run, index, at) for at in range(len(turn.calls))]
                message["tool_calls"] = [
                    {"id": identifier, "name": name, "arguments": arguments, "requestor": "assistant"}
                    for identifier, (name, arguments) in zip(pending, turn.calls, strict=True)]
            if turn.role == "tool":
                message |= {"id": pending.pop(0), "requestor": "assistant", "error": turn.error}
            if turn.role == "assistant":
                message["usage"] = {"completion_tokens": 60, "prompt_tokens": 900 + 40 * index}
            messages.append(message)
        simulations.append({
            "id": digest("tau2", run.task, run.trial), "task_id": run.task, "trial": run.trial, "seed": 11,
            "start_time": moment(0), "end_time": moment(len(messages)), "termination_reason": run.ended,
            "reward_info": {"reward": 1.0 if run.outcome == "success" else 0.0}, "messages": messages})
    wanted = {run.task for run in runs}
    return {name: pretty({
        "timestamp": moment(0),
        "info": {"num_trials": len(runs), "max_steps": 30, "seed": 11,
                 "agent_info": {"implementation": "llm_agent", "llm": runs[0].model, "llm_args": {}},
                 "user_info": {"implementation": "user_simulator", "llm": "juniper-70b", "llm_args": {}},
                 "environment_info": {"domain_name": "rail", "policy": system}},
        "tasks": [{"id": task, "user_scenario": {"instructions": instruction},
                   "evaluation_criteria": {"actions": [
                       {"action_id": f"{task}_{at}", "name": action, "arguments": kwargs}
                       for at, (action, kwargs) in enumerate(gold)]}}
                  for task, (_, instruction, gold) in ((str(key), value) for key, value in tasks.items())
                  if task in wanted],
        "simulations": simulations})}


def atif(folder, runs, system, tools):
    """One file a run; a call's result stands in the step that made the call."""
    files = {}
    for run in runs:
        steps = [{"source": "system", "message": system}]
        for index, turn in enumerate(run.turns):
            if turn.role == "tool":
                call = steps[-1]["tool_calls"][len(steps[-1]["observation"]["results"])]
                result = {"source_call_id": call["tool_call_id"], "content": turn.text}
                if turn.error:
                    result["extra"] = {"is_error": True}
                steps[-1]["observation"]["results"].append(result)
            elif turn.role == "user":
                steps.append({"source": "user", "message": turn.text})
            else:
                step = {"source": "agent", "model_name": run.model, "message": "" if turn.calls else turn.text}
                if turn.calls:
                    step["reasoning_content"] = turn.text or "The next thing to do is clear."
                    step["tool_calls"] = [
                        {"tool_call_id": call_id(run, index, at), "function_name": name, "arguments": arguments}
                        for at, (name, arguments) in enumerate(turn.calls)]
                    step["observation"] = {"results": []}
                steps.append(step)
        for number, step in enumerate(steps):
            step["step_id"] = number + 1
            step["timestamp"] = moment(number)
        outcome = {"task_id": run.task, "trial": run.trial}
        if run.outcome != "unknown":
            outcome["reward"] = 1.0 if run.outcome == "success" else 0.0
        files[f"{folder}/{native_id(run)}.json"] = pretty({
            "schema_version": "ATIF-v1.7", "session_id": native_id(run), "trajectory_id": native_id(run),
            "agent": {"name": "stock-keeper", "version": "0.4.0", "model_name": run.model, "tool_definitions": tools},
            "steps": steps, "final_metrics": {"total_steps": len(steps)}, "extra": outcome,
        })
    return files


def swe_agent(folder, runs, system):
    """A folder a trial with a `.traj` and, where the tests ran, their `report.json`."""
    files = {}
    for run in runs:
        fenced = run.extra.get("parser") == "thought_action"
        history = [{"role": "system", "content": run.extra.get("system", system), "agent": "main",
                    "message_type": "system_prompt"}]
        steps = []
        for index, turn in enumerate(run.turns):
            if turn.role == "assistant":
                action = "\n".join(shell_line(name, arguments) for name, arguments in turn.calls)
                text = f"{turn.text}\n```\n{action}\n```" if fenced and turn.calls else turn.text
                message = {"role": "assistant", "content": text, "thought": turn.text, "action": action,
                           "agent": "main", "message_type": "action"}
                if turn.calls and not fenced:
                    message["tool_calls"] = [function_call(run, index, at, call)
                                             for at, call in enumerate(turn.calls)]
                history.append(message)
                steps.append({"action": action, "observation": "", "response": text, "thought": turn.text,
                              "execution_time": 0.2, "state": {"working_dir": "/tidyslug"}})
            else:
                if steps:
                    steps[-1]["observation"] = turn.text
                observation = {"role": "user", "content": turn.text, "agent": "main", "message_type": "observation"}
                if turn.role == "tool" and not fenced:
                    observation |= {"role": "tool", "tool_call_ids": [call_id(run, index - 1, 0)]}
                history.append(observation)
        submission = run.extra.get("submission")
        info = {"exit_status": run.ended, "submission": submission, "swe_agent_version": "1.0.1",
                "model_stats": {"instance_cost": 0.03, "tokens_sent": 9000, "tokens_received": 700,
                                "api_calls": len(steps)}}
        place = f"{folder}/trial-{run.trial}/{run.task}"
        replay = {"problem_statement": {"id": run.task, "text": run.turns[0].text, "type": "text"},
                  "agent": {"model": {"name": run.model}}}
        files[f"{place}/{run.task}.traj"] = pretty({
            "trajectory": steps, "history": history, "info": info, "replay_config": as_text(replay),
            "environment": "tidyslug"})
        failed = [] if run.outcome == "success" else ["tests/test_core.py::test_accents"]
        passed = ["tests/test_core.py::test_accents"] if run.outcome == "success" else []
        files[f"{place}/report.json"] = pretty({
            "patch_is_None": not submission, "patch_exists": bool(submission),
            "patch_successfully_applied": bool(submission), "resolved": run.outcome == "success",
            "tests_status": {"FAIL_TO_PASS": {"success": passed, "failure": failed},
                             "PASS_TO_PASS": {"success": [], "failure": []}}})
    return files


def shell_line(name, arguments):
    """A call as SWE-agent's shell sees it: `bash` is the command itself, another tool a command with words."""
    return arguments["command"] if name == "bash" else " ".join([name, *map(str, arguments.values())])


def inspect(name, runs, system):
    """One log; a sample a task and epoch, `arguments` as objects, a score that is C or I."""
    samples = []
    for run in runs:
        messages = [{"id": digest(run.task, run.trial, "system"), "role": "system", "content": system}]
        names = []
        for index, turn in enumerate(run.turns):
            message = {"id": digest(run.task, run.trial, index), "role": turn.role, "content": turn.text}
            if turn.role == "assistant":
                message |= {"source": "generate", "model": run.model}
                names = [(call_id(run, index, at), call) for at, (call, _) in enumerate(turn.calls)]
                if turn.calls:
                    message["tool_calls"] = [
                        {"id": identifier, "function": call, "type": "function",
                         **({"arguments": arguments} if isinstance(arguments, dict) else
                            {"arguments": {}, "parse_error": f"Error parsing the tool call arguments:\n{arguments}"})}
                        for (identifier, call), (_, arguments) in zip(names, turn.calls, strict=True)]
            elif turn.role == "tool":
                message |= {"tool_call_id": names[0][0], "function": names[0][1]}
                if turn.error:
                    message["error"] = {"type": "unknown", "message": turn.text.removeprefix("Error: ")}
            else:
                message["source"] = "input"
            messages.append(message)
        sample = {"id": run.task, "epoch": run.trial, "input": run.turns[0].text, "target": run.extra["target"],
                  "messages": messages, "metadata": {}, "store": {}, "events": [], "attachments": {},
                  "output": {"model": run.model, "choices": [], "completion": run.turns[-1].text}}
        if "error" in run.extra:
            sample["error"] = {"message": run.extra["error"], "traceback": "", "traceback_ansi": ""}
        else:
            sample["scores"] = {"match": {"value": "C" if run.outcome == "success" else "I",
                                          "answer": run.turns[-1].text, "explanation": ""}}
        if "limit" in run.extra:
            sample["limit"] = run.extra["limit"]
        samples.append(sample)
    model = runs[0].model
    return {name: pretty({
        "version": 2, "status": "success",
        "eval": {"eval_id": digest("eval"), "run_id": digest("run"), "created": moment(0), "task": "sales_questions",
                 "task_id": digest("task"), "task_version": 0, "task_args": {}, "model": model, "model_args": {},
                 "dataset": {"name": "sales", "samples": len({run.task for run in runs})},
                 "config": {"epochs": 4}, "packages": {"inspect_ai": "0.3.95"}, "scorers": [{"name": "match"}]},
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "stats": {"started_at": moment(0), "completed_at": moment(90), "model_usage": {}},
        "samples": samples})}


def claude_code(folder, runs):
    """One session a file, one event a line, chained by `parentUuid`."""
    files = {}
    for run in runs:
        session = session_id(run)
        parent, calls, lines = None, [], []
        for index, turn in enumerate(run.turns):
            event = {"type": "user", "timestamp": moment(index), "parentUuid": parent, "isSidechain": False,
                     "userType": "external", "cwd": "/home/dev/tidyslug", "sessionId": session, "version": "2.0.14",
                     "gitBranch": "main", "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session}/{index}"))}
            if turn.role == "assistant":
                blocks = [{"type": "text", "text": turn.text}] if turn.text else []
                calls = [call_id(run, index, at) for at in range(len(turn.calls))]
                blocks += [{"type": "tool_use", "id": identifier, "name": name, "input": arguments}
                           for identifier, (name, arguments) in zip(calls, turn.calls, strict=True)]
                event |= {"type": "assistant", "message": {
                    "id": f"msg_{digest(session, index)}", "type": "message", "role": "assistant", "model": run.model,
                    "content": blocks, "stop_reason": "tool_use" if turn.calls else "end_turn",
                    "usage": {"input_tokens": 900 + 40 * index, "output_tokens": 60}}}
            elif turn.role == "tool":
                block = {"type": "tool_result", "tool_use_id": calls.pop(0), "content": turn.text}
                if turn.error:
                    block["is_error"] = True
                event["message"] = {"role": "user", "content": [block]}
                event["toolUseResult"] = turn.text
            else:
                event["message"] = {"role": "user", "content": turn.text}
            parent = event["uuid"]
            lines.append(as_text(event))
        files[f"{folder}/{session}.jsonl"] = "\n".join(lines) + "\n"
    return files
