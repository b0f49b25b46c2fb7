#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the page of `rota plan --report`.

    check_plan_page.py PAGE.html PLAN.json

Elements close in order, nothing is read from elsewhere, each `data` element has
the number of the plan that `data-of` names, and every stage and policy is there."""
import html.parser
import json
import re
import sys

VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.data = [], {}

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not {"src", "href"} & set(attributes), attributes
        if tag == "data":
            self.data[attributes["data-of"]] = attributes["value"]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
with open(sys.argv[2]) as file:
    plan = json.load(file)
assert not re.search(r"https?://|@import|url\(", text)
page = Page()
page.feed(text)
assert not page.open, page.open


def value_at(path):
    value = plan
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


for path, value in page.data.items():
    assert json.loads(value) == value_at(path), (path, value)
expected = {"parameters", "bubble", "operations", "microbatches"}
for number, policy in enumerate(plan["policies"]):
    expected |= {f"policies.{number}.{key}" for key in ("peak_bytes", "step_seconds")}
for name in ("transfers", "transfers_by_axes"):
    for number in range(len(plan[name])):
        expected |= {f"{name}.{number}.{key}" for key in ("bytes", "seconds")}
assert expected <= set(page.data), expected - set(page.data)
for stage in range(len(plan["stages"])):
    assert f">stage {stage}<" in text

# Boxes of the timeline: the first and the last action of each stage.
for row in plan["timeline"]:
    computed = [a["action"] for a in row["actions"] if a["stream"] == "compute"
                and a["end"] > a["begin"]]
    for name in (computed[0], computed[-1]):
        assert f"<title>{name}: " in text, name
