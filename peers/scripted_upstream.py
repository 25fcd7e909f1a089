"""A model's server that plays a script in three APIs, and remembers every byte it sent.

Whoever asks is played one little errand: two parallel calls of tools first, then, once their results are in
the history, a final answer. Run by itself it prints its address and serves until it is killed.
"""

import json
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLS = [("call_w1", "get_weather", '{"city":"Zürich"}'), ("call_t1", "find_trains", '{"to":"Bern","limit":3}')]
FIRST, LAST = "Let me look.", "Take the IC 1 at 08:02. It is 7 °C and foggy."


@dataclass
class Exchange:
    path: str
    headers: dict
    request: dict
    sent: bytes = b""


@dataclass
class Upstream:
    """Says `answers` one after the other where there are some, else plays the errand."""

    answers: list = field(default_factory=list)
    prefix: str = ""
    exchanges: list = field(default_factory=list)

    def __enter__(self):
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.reply(upstream, Exchange(self.path, dict(self.headers), {}), {"object": "list", "data": [{"id": "toy", "object": "model"}]})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                exchange = Exchange(self.path, {key.lower(): value for key, value in self.headers.items()}, body)
                upstream.exchanges.append(exchange)
                answered = upstream.answer(self.path, body)
                if body.get("stream"):
                    self.stream(exchange, events(self.path, answered, body))
                else:
                    self.reply(upstream, exchange, answered)

            def reply(self, upstream, exchange, value):
                exchange.sent = json.dumps(value, ensure_ascii=False, indent=1).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(exchange.sent)))
                self.end_headers()
                self.wfile.write(exchange.sent)

            def stream(self, exchange, lines):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in lines:
                    piece = line.encode()
                    exchange.sent += piece
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        number = len(self.exchanges) - 1
        if self.answers:
            text, calls = self.answers[min(number, len(self.answers) - 1)], []
        elif body.get("tools") and not has_results(body):
            text, calls = self.prefix + FIRST, CALLS
        else:
            text, calls = self.prefix + LAST, []
        if path.endswith("/chat/completions"):
            return chat(number, text, calls)
        return message(number, text, calls) if path.endswith("/messages") else response(number, text, calls)


def has_results(body):
    return any(kind in json.dumps(body) for kind in ['"role": "tool"', '"tool_result"', '"function_call_output"'])


def chat(number, text, calls):
    said = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        said["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id, name, arguments in calls
        ]
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": "toy-2024",
        "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        "x_vendor": {"kept": [1.50]},
    }


def message(number, text, calls):
    content = [{"type": "text", "text": text}]
    content += [{"type": "tool_use", "id": id, "name": name, "input": json.loads(arguments)} for id, name, arguments in calls]
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "toy-2024", "content": content,
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def response(number, text, calls):
    output = [{
        "type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }]
    output += [
        {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments, "status": "completed"}
        for id, name, arguments in calls
    ]
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 1, "model": "toy-2024", "status": "completed", "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "output": output, "parallel_tool_calls": True,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
                  "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}},
    }


def pieces(text, size=5):
    return [text[at : at + size] for at in range(0, len(text), size)]


def events(path, answer, body):
    if path.endswith("/chat/completions"):
        return chat_events(answer, (body.get("stream_options") or {}).get("include_usage"))
    return message_events(answer) if path.endswith("/messages") else response_events(answer)


def chat_events(answer, usage):
    head = {"id": answer["id"], "object": "chat.completion.chunk", "created": 1, "model": answer["model"]}

    def chunk(delta, finish=None):
        return f"data: {json.dumps({**head, 'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]}, ensure_ascii=False)}\n\n"

    said = answer["choices"][0]["message"]
    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(said["content"]):
        yield chunk({"content": piece})
    for index, call in enumerate(said.get("tool_calls", [])):
        yield chunk({"tool_calls": [{**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}]})
        for piece in pieces(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, answer["choices"][0]["finish_reason"])
    if usage:
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': answer['usage']})}\n\n"
    yield "data: [DONE]\n\n"


def typed(kind, **data):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n"


def message_events(answer):
    yield typed("message_start", message={**answer, "content": [], "stop_reason": None})
    yield typed("ping")
    for index, block in enumerate(answer["content"]):
        if block["type"] == "text":
            empty, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(json.dumps(block["input"]))]
        yield typed("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield typed("content_block_delta", index=index, delta=delta)
        yield typed("content_block_stop", index=index)
    yield typed("message_delta", delta={"stop_reason": answer["stop_reason"], "stop_sequence": None}, usage={"output_tokens": 7})
    yield typed("message_stop")


def response_events(answer):
    number = iter(range(1_000_000))
    yield typed("response.created", sequence_number=next(number), response={**answer, "output": [], "status": "in_progress"})
    for index, item in enumerate(answer["output"]):
        yield typed("response.output_item.added", sequence_number=next(number), output_index=index, item={**item, "status": "in_progress"})
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            part = item["content"][0]
            yield typed("response.content_part.added", sequence_number=next(number), **place, part={**part, "text": ""})
            for piece in pieces(part["text"]):
                yield typed("response.output_text.delta", sequence_number=next(number), **place, delta=piece, logprobs=[])
            yield typed("response.output_text.done", sequence_number=next(number), **place, text=part["text"], logprobs=[])
            yield typed("response.content_part.done", sequence_number=next(number), **place, part=part)
        else:
            place = {"item_id": item["id"], "output_index": index}
            yield typed("response.function_call_arguments.delta", sequence_number=next(number), **place, delta=item["arguments"])
            yield typed("response.function_call_arguments.done", sequence_number=next(number), **place, name=item["name"], arguments=item["arguments"])
        yield typed("response.output_item.done", sequence_number=next(number), output_index=index, item=item)
    yield typed("response.completed", sequence_number=next(number), response=answer)


if __name__ == "__main__":
    with Upstream(prefix=sys.argv[1] if len(sys.argv) > 1 else "") as running:
        print(running.url, flush=True)
        threading.Event().wait()
