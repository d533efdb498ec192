"""Renders a chat template (Jinja2) for conversations.

stdin: {"template", "names": {"bos_token": ..., ...}, "chats": [{"messages", "prompt"}, ...]}; stdout: a list
with {"text"} or {"refused"} for each. The template is other people's: it runs in Jinja2's own sandbox, with
the names, filters and tags that transformers gives it."""
import json
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

LAST_DAY = "01 Jan 2025"  # for templates that ask for the date: a prompt must be the same every day


class Generation(jinja2.ext.Extension):
    """{% generation %} marks an assistant's words for training; the text is the same without it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value,
                      ensure_ascii=ensure_ascii,
                      indent=indent,
                      separators=separators,
                      sort_keys=sort_keys)


def main():
    question = json.load(sys.stdin)
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    if "strftime_now is defined" not in question["template"]:
        environment.globals["strftime_now"] = lambda form: LAST_DAY
    answers = []
    for chat in question["chats"]:
        try:
            template = environment.from_string(question["template"])
            text = template.render(messages=chat["messages"],
                                   add_generation_prompt=chat["prompt"],
                                   enable_thinking=False,
                                   **question["names"])
            answers.append({"text": text})
        except Exception as error:  # whatever a template does
            answers.append({"refused": f"{type(error).__name__}: {error}"})
    json.dump(answers, sys.stdout)


main()
