"""How a script serves a test that talks to it."""

import json
import os
import sys


def serve(make):
    """Makes a party of the folder that is the script's argument, says that it is ready, and answers each JSON
    object of stdin, {"do": METHOD, …}, by calling that method of it: one JSON object a line on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what engines print is not an answer
    party = make(os.path.abspath(sys.argv[1]))
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(party, request.pop("do"))(**request)
        print(json.dumps(answer or {}), file=answers, flush=True)
