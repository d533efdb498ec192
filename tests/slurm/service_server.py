"""service_server.py HOST PORT ANSWERS: speaks as much of OpenAI's protocol as a drill needs. Each answer takes half a
second and holds no program; behind each that was sent whole a line is added to the file ANSWERS."""
import http.server
import json
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"status": "ok"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(0.5)
        choices = [{"index": i, "message": {"role": "assistant", "content": "none"}, "finish_reason": "stop"}
                   for i in range(asked.get("n", 1))]
        self.answer({"id": "1", "object": "chat.completion", "model": asked["model"], "choices": choices,
                     "usage": {"prompt_tokens": 10, "completion_tokens": len(choices)}})
        with open(sys.argv[3], "a") as file:
            file.write(f"{os.getpid()} {len(choices)}\n")


http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
