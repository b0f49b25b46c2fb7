#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a page in a headless browser.

    check_in_browser.py BROWSER PAGE.html COPY.html WIDTH...

COPY becomes the page with a script that measures it, in a frame. At each width nothing is
wider than the window but what scrolls by itself, each picture has a size, and no
text of a picture stands outside of it."""
import json
import os
import re
import subprocess
import sys

browser, page, copy, *widths = sys.argv[1:]
SCRIPT = """<script>
const outside = [];
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
        box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      outside.push(text.textContent);
  }
}
const sizes = [...document.querySelectorAll('svg')].map(
    svg => Math.min(svg.getBoundingClientRect().width,
                    svg.getBoundingClientRect().height));
parent.postMessage(JSON.stringify({
  window: innerWidth, page: document.documentElement.scrollWidth, sizes, outside}), '*');
</script>
"""
# Browsers have no windows below 500 pixels, so the page is in a frame.
FRAME = """<!DOCTYPE html>
<body style="margin:0"><pre id="measured"></pre>
<script>
onmessage = event => { document.querySelector('pre').textContent = event.data; };
</script>
<iframe src="file://%s" style="border:0;width:%spx;height:1000px"></iframe>
</body>
"""
with open(page, encoding="utf-8") as file:
    text = file.read()
with open(copy, "w", encoding="utf-8") as file:
    file.write(text.replace("</body>", SCRIPT + "</body>"))
for width in widths:
    frame = f"{copy}.{width}.html"
    with open(frame, "w", encoding="utf-8") as file:
        file.write(FRAME % (os.path.abspath(copy), width))
    dom = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--window-size=1400,1100", "--dump-dom", f"file://{os.path.abspath(frame)}"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=120).stdout.decode()
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.S)
    measured = json.loads(found.group(1).replace("&gt;", ">").replace("&lt;", "<")
                          .replace("&amp;", "&"))
    assert measured["window"] == int(width), (width, measured)
    assert measured["page"] <= measured["window"], (width, measured)
    assert measured["sizes"] and min(measured["sizes"]) > 20, (width, measured)
    assert not measured["outside"], (width, measured)
    print(f"{len(measured['sizes'])} pictures on {width} pixels")
