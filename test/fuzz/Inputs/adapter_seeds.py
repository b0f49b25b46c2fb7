# SPDX-License-Identifier: Apache-2.0
"""Writes inputs of fuzz-adapter to a folder: each an adapter_config.json."""
import json
import os
import sys


def seed(name, text=None, **keys):
    whole = {"peft_type": "LORA", "r": 4, "lora_alpha": 8.0,
             "target_modules": ["q_proj", "v_proj"], **keys}
    with open(os.path.join(sys.argv[1], name), "w") as output:
        output.write(text or json.dumps(whole))


seed("plain", use_dora=False, bias="none", rank_pattern={}, modules_to_save=None)
seed("kind", peft_type="IA3")
seed("rank", r=1 << 63)
seed("alpha", text='{"peft_type": "LORA", "r": 1, "lora_alpha": 1e308, "target_modules": ["q"]}')
seed("all", target_modules="all-linear")
seed("pattern", rank_pattern={"q_proj": 8})
seed("deep", text='{"r": ' + "[" * 1000)
seed("types", r=1.5, lora_alpha="8", target_modules=[1, None])
