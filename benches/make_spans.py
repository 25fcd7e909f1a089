"""Writes traces of an observability tool for `benches/import.py`: runs that interleave, each request
repeating its history, as OTLP JSON lines or as Langfuse JSON lines.

    python benches/make_spans.py otlp OUT.jsonl 1000      # about 1000 MB
    python benches/make_spans.py langfuse OUT.jsonl 1000

The same arguments give the same bytes.
"""

import json
import random
import sys

WORDS = (
    "the station train ticket river morning agent asked whether there was any other way to reach the city before noon "
    "weather cloud error timeout because nothing answered file line value table column result again Zürich Genève naïve"
).split()
OPEN_RUNS = 24


def text(draw, words):
    return " ".join(draw.choice(WORDS) for _ in range(words))


def run(number, draw):
    """The spans of one run, in order of their ends: (kind, name, parent, start, end, input, output)."""
    clock = 1_772_359_200_000_000_000 + number * 1_000_000_000
    history = [
        {"role": "system", "content": text(draw, 120)},
        {"role": "user", "content": f"run {number}: " + text(draw, 40)},
    ]
    spans = []
    turns = draw.randint(3, 12)
    for turn in range(turns):
        start = clock
        clock += draw.randint(1, 900) * 1_000_000
        asked = list(history)
        if turn + 1 == turns:
            answer = {"role": "assistant", "content": text(draw, 60)}
            spans.append(("model", "ask", start, clock, asked, answer))
            break
        calls = [
            {
                "id": f"call_{number}_{turn}_{index}",
                "type": "function",
                "function": {"name": "find_trains", "arguments": json.dumps({"from": text(draw, 2), "limit": draw.randint(1, 9)})},
            }
            for index in range(draw.choice([1, 1, 1, 2]))
        ]
        answer = {"role": "assistant", "content": text(draw, 25), "tool_calls": calls}
        spans.append(("model", "ask", start, clock, asked, answer))
        history.append(answer)
        for call in calls:
            start = clock
            clock += draw.randint(1, 300) * 1_000_000
            result = text(draw, draw.choice([10, 40, 300]))
            spans.append(("tool", call["function"]["name"], start, clock, call, result))
            history.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    spans.append(("agent", "travel-desk", spans[0][2], clock, None, None))
    return spans


def parts(message):
    """A message in the form of OpenTelemetry's conventions."""
    held = []
    if message["role"] == "tool":
        held.append({"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]})
    elif message.get("content"):
        held.append({"type": "text", "content": message["content"]})
    for call in message.get("tool_calls", []):
        function = call["function"]
        held.append({"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": json.loads(function["arguments"])})
    return {"role": message["role"], "parts": held}


def attribute(key, value):
    kind = "stringValue" if isinstance(value, str) else "intValue"
    return {"key": key, "value": {kind: str(value)}}


def otlp(number, index, last, span):
    kind, name, start, end, given, gave = span
    row = {"traceId": f"{number:032x}", "spanId": f"{number << 8 | index:016x}", "kind": 1}
    if kind != "agent":
        row["parentSpanId"] = f"{number << 8 | last:016x}"
    row |= {"name": name, "startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}
    if kind == "model":
        attributes = [
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.request.model", "model-1"),
            attribute("gen_ai.usage.input_tokens", len(given) * 50),
            attribute("gen_ai.usage.output_tokens", 50),
            attribute("gen_ai.input.messages", json.dumps([parts(message) for message in given], ensure_ascii=False)),
            attribute("gen_ai.output.messages", json.dumps([parts(gave)], ensure_ascii=False)),
        ]
    elif kind == "tool":
        attributes = [
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", name),
            attribute("gen_ai.tool.call.id", given["id"]),
            attribute("gen_ai.tool.call.arguments", given["function"]["arguments"]),
            attribute("gen_ai.tool.call.result", gave),
        ]
    else:
        attributes = [attribute("gen_ai.operation.name", "invoke_agent"), attribute("gen_ai.agent.name", name)]
    row["attributes"] = attributes
    scope = {"scope": {"name": "bench"}, "spans": [row]}
    return {"resourceSpans": [{"resource": {"attributes": [attribute("service.name", "bench")]}, "scopeSpans": [scope]}]}


def at(nanos):
    seconds = nanos // 1_000_000_000 % 86_400
    return f"2026-03-01 {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{nanos // 1000 % 1_000_000:06d}"


def langfuse(number, index, last, span):
    kind, name, start, end, given, gave = span
    row = {
        "id": f"{number << 8 | index:016x}",
        "trace_id": f"{number:032x}",
        "project_id": "project-1",
        "environment": "default",
        "type": {"model": "GENERATION", "tool": "TOOL", "agent": "AGENT"}[kind],
        "parent_observation_id": "" if kind == "agent" else f"{number << 8 | last:016x}",
        "start_time": at(start),
        "end_time": at(end),
        "name": name,
        "level": "DEFAULT",
        "input": "",
        "output": "",
        "session_id": f"session-{number % 100}",
    }
    if kind == "model":
        row["input"] = json.dumps({"messages": given}, ensure_ascii=False)
        row["output"] = json.dumps(gave, ensure_ascii=False)
        row["provided_model_name"] = "model-1"
        row["usage_details"] = {"input": len(given) * 50, "output": 50, "total": len(given) * 50 + 50}
    elif kind == "tool":
        row["input"] = given["function"]["arguments"]
        row["output"] = gave
    return row


def main():
    form, path, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    write = {"otlp": otlp, "langfuse": langfuse}[form]
    draw = random.Random(7)
    written, number, open_runs = 0, 0, []
    with open(path, "wb") as file:
        while written < megabytes * 1_000_000 or open_runs:
            while len(open_runs) < OPEN_RUNS and written < megabytes * 1_000_000:
                number += 1
                spans = run(number, draw)
                open_runs.append((number, len(spans) - 1, list(enumerate(spans))))
            place = draw.randrange(len(open_runs))
            current, last, left = open_runs[place]
            index, span = left.pop(0)
            if not left:
                open_runs.pop(place)
            line = json.dumps(write(current, index, last, span), ensure_ascii=False).encode() + b"\n"
            file.write(line)
            written += len(line)
    print(f"{path}: {written / 1e6:.0f} MB, {number} runs")


main()
