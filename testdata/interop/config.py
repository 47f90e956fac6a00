"""What PyIceberg itself makes of configuration files, variables and properties.

Reads a list of cases as JSON from stdin and writes what PyIceberg says of each, in one process:

    {"properties": {...} or null, "default": "name", "error": "..." or ""}

With --keys it prints the names of the properties of catalogs and storage that PyIceberg knows instead.

Nested mappings are joined by dots, a list is an error, as in icepipe; what PyIceberg has flat wins.
"""

import importlib
import json
import os
import re
import sys

from pyiceberg.utils.config import Config, merge_config


def flat(conf, prefix=""):
    """The values of a catalog with nested names joined by dots."""
    out = {}
    for key, value in conf.items():
        if isinstance(value, list):
            raise ValueError(f"{prefix}{key} is a list")
        if not isinstance(value, dict):
            out[prefix + key] = value
    for key, value in conf.items():
        if isinstance(value, dict):
            for name, inner in flat(value, f"{prefix}{key}.").items():
                out.setdefault(name, inner)
    return out


def ask(case):
    os.environ.clear()
    for pair in case["environ"]:
        name, _, value = pair.partition("=")
        os.environ[name] = value
    os.chdir(case["dir"])
    config = Config()
    default = config.get_default_catalog_name()
    found = config.get_catalog_config(case["ask"])
    if case["given"]:
        found = merge_config(found or {}, case["given"])
    return {"properties": None if found is None else flat(found), "default": default, "error": ""}


if sys.argv[1:] == ["--keys"]:
    names = set()
    for module in ("pyiceberg.io", "pyiceberg.catalog.rest", "pyiceberg.catalog.sql"):
        for name, value in vars(importlib.import_module(module)).items():
            if name.isupper() and isinstance(value, str) and re.fullmatch(r"[a-z0-9]+([.-][a-z0-9_-]+)+", value):
                names.add(value)
    # values, and a key of one manager's answer, that are no properties
    json.dump(sorted(names - {"utf-8", "vended-credentials", "auth.manager"}), sys.stdout)
    sys.exit()

answers = []
for case in json.load(sys.stdin):
    try:
        answers.append(ask(case))
    except Exception as e:  # every one is an answer
        answers.append({"properties": None, "default": "", "error": f"{type(e).__name__}: {e}".splitlines()[0]})
json.dump(answers, sys.stdout)
