"""Conversations that chat templates are compared on: seeded, so every run makes the same ones.

Each case is `{"messages", "tools", "add_generation_prompt"}`. Between them they hold tools, parallel calls,
null and absent contents, reasoning in each of its spellings, image placeholders, odd white space and every
kind of JSON value.
"""

import json
import random
import sys

WORDS = (
    "the order was cancelled refund of $12.50 please confirm flight HAT-170 seat 12A total naïve café "
    "Zürich 東京 日本語 안녕하세요 привет мир مرحبا שלום 🙂 👩‍👩‍👧 🇫🇷 e\u0301 ﬁ ½ ∑ → ٣ \u200b \u00a0 "
    "x=1; if (a<b && c>d) { return \"ok\"; } it's 'quoted' \\n \\ / <b>bold</b> {{ jinja }} {% raw %} "
    "<|im_end|> <|eot_id|> </s> <think> <tool_call> [INST] ```python print(1)``` 1e20 0.1 NaN null True"
).split(" ")
SPACES = ["", "", "", "", " ", "\n", "\n\n", "\t", "\u00a0", "\u001f", "\u2028", "\r\n"]
ROLES = ["user", "assistant"]


def text(rng, most=30):
    words = [rng.choice(WORDS) for _ in range(rng.randint(0 if rng.random() < 0.05 else 1, most))]
    glue = rng.choice([" ", " ", " ", "\n", "  "])
    return rng.choice(SPACES) + glue.join(words) + rng.choice(SPACES)


def scalar(rng):
    return rng.choice(
        [
            lambda: text(rng, 4),
            lambda: rng.randint(-(10**6), 10**12),
            lambda: rng.choice([0.1, 1.0, -2.5, 1e20, 1e-7, 123456.789, 1e16, 5e-324]),
            lambda: rng.choice([True, False, None]),
            lambda: "",
        ]
    )()


def value(rng, depth=0):
    kind = rng.random()
    if depth > 2 or kind < 0.7:
        return scalar(rng)
    if kind < 0.85:
        return [value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return {name(rng): value(rng, depth + 1) for _ in range(rng.randint(0, 3))}


def name(rng):
    return rng.choice(["city", "order_id", "when", "amount", "options", "ids", "q", "naïve", "a b"]) + rng.choice(["", "2"])


def arguments(rng):
    return {name(rng): value(rng) for _ in range(rng.randint(0, 4))}


def schema(rng, depth=0):
    kind = rng.choice(["string", "number", "integer", "boolean", "array", "object"])
    out = {"type": kind}
    if rng.random() < 0.7:
        out["description"] = text(rng, 8)
    if kind == "string" and rng.random() < 0.3:
        out["enum"] = [text(rng, 2) for _ in range(rng.randint(1, 3))]
    if kind == "number" and rng.random() < 0.5:
        out["default"] = rng.choice([0.5, 1, 1e20])
    if kind == "array":
        out["items"] = schema(rng, depth + 1) if depth < 2 else {"type": "string"}
    if kind == "object" and depth < 2:
        out["properties"] = {name(rng): schema(rng, depth + 1) for _ in range(rng.randint(0, 3))}
        out["required"] = sorted(out["properties"])[:1]
    if rng.random() < 0.1:
        out["nullable"] = True
    return out


def tool(rng, index):
    properties = {name(rng): schema(rng) for _ in range(rng.randint(0, 4))}
    parameters = {"type": "object", "properties": properties, "required": sorted(properties)[: rng.randint(0, 2)]}
    function = {"name": f"tool_{index}", "description": text(rng, 12), "parameters": parameters}
    if rng.random() < 0.1:
        function["return"] = {"type": "object", "description": "what it returns"}
    return {"type": "function", "function": function}


def call(rng, tools, number, as_text):
    given = arguments(rng)
    function = {
        "name": rng.choice(tools)["function"]["name"],
        "arguments": json.dumps(given, ensure_ascii=rng.random() < 0.5) if as_text else given,
    }
    out = {"type": "function", "function": function}
    if rng.random() < 0.6:
        out["id"] = f"call_{number:09d}"
    return out


def content(rng, shape):
    if shape == "parts":
        parts = [{"type": "text", "text": text(rng)}]
        if rng.random() < 0.4:
            parts.insert(rng.randint(0, 1), {"type": "image"})
        return parts
    return text(rng)


def conversation(rng):
    shape = rng.choice(["text", "text", "text", "text", "parts"])
    tools = [tool(rng, index) for index in range(rng.randint(1, 4))] if rng.random() < 0.5 else None
    as_text = rng.random() < 0.1
    with_reasoning = rng.random() < 0.35
    messages = []
    if rng.random() < 0.6:
        messages.append({"role": "system", "content": content(rng, shape)})
    number = 0
    for _ in range(rng.randint(1, 5)):
        messages.append({"role": "user", "content": content(rng, shape)})
        for _ in range(rng.randint(0, 2) if tools else 0):
            count = rng.choice([1, 1, 1, 2, 3])
            calls = [call(rng, tools, number + index, as_text) for index in range(count)]
            message = {"role": "assistant", "content": content(rng, shape), "tool_calls": calls}
            spelling = rng.random()
            if spelling < 0.3:
                message["content"] = None
            elif spelling < 0.5:
                message["content"] = ""
            elif spelling < 0.55:
                del message["content"]
            reason(rng, message, with_reasoning)
            messages.append(message)
            for each in calls:
                answer = {"role": "tool", "content": text(rng) if rng.random() < 0.9 else json.dumps(value(rng))}
                if rng.random() < 0.7:
                    answer["name"] = each["function"]["name"]
                if "id" in each:
                    answer["tool_call_id"] = each["id"]
                messages.append(answer)
                number += 1
        message = {"role": "assistant", "content": content(rng, shape)}
        reason(rng, message, with_reasoning)
        messages.append(message)
    if rng.random() < 0.2:
        messages.pop()
    return {"messages": messages, "tools": tools, "add_generation_prompt": rng.random() < 0.2}


def reason(rng, message, with_reasoning):
    kind = rng.random()
    if not with_reasoning or kind < 0.3:
        return
    if kind < 0.7:
        message["reasoning_content"] = text(rng)
    elif kind < 0.8:
        message["thinking"] = text(rng)
    elif kind < 0.85:
        message["reasoning"] = text(rng)
    elif kind < 0.9:
        message["reasoning_content"] = None
    elif isinstance(message.get("content"), str):
        message["content"] = "<think>\n" + text(rng) + "\n</think>\n\n" + message["content"]


def cases(count, seed=7):
    return [conversation(random.Random(seed * 1_000_003 + index)) for index in range(count)]


if __name__ == "__main__":
    for case in cases(int(sys.argv[1])):
        print(json.dumps(case, ensure_ascii=False))
