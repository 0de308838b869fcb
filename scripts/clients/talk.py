"""What the clients of `real-clients` say, and how they report what they got."""

import json

PROMPT = "Please count every heron for me."
SYSTEM = "You count birds."
OUTPUT = "3-4-5-6-7"
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
              "required": ["command"]}
TOOL = {"name": "bash", "description": "Runs a command.", "parameters": PARAMETERS}


class Report:
    """Collects what a client received, one line for each conversation."""

    def __init__(self, case):
        self.case, self.said, self.calls, self.tokens = case, [], [], [0, 0]

    def answer(self, text, calls, given, taken):
        """One answer: its text, the inputs of its calls, and the tokens that it states."""
        self.said.append(text)
        self.calls += calls
        self.tokens[0] += given
        self.tokens[1] += taken

    def print(self):
        print(json.dumps(vars(self), sort_keys=True), flush=True)
