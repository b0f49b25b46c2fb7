#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files that `rota probe` is compared with.

    pip install torch transformers safetensors
    python make_golden.py [CASE...]  # writes into the folders beside it

Each folder holds a small model in the form of model hubs (config.json and
model.safetensors in f32), tokens.safetensors with `tokens` [batch, sequence + 1],
run.json (what `rota probe` is asked for), and golden.safetensors: logits, loss,
grad.<parameter> and loss_curve of AdamW steps on that one batch. transformers computes all of it in f64 on the f32
weights, rotary frequencies included, so that only our own error is measured.

Made with torch 2.15 and transformers 5.23.
"""
import json
import math
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3DecoderLayer)

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 10

SIZES = dict(hidden_size=16, initializer_range=0.2, intermediate_size=24,
             max_position_embeddings=512, num_attention_heads=4,
             num_hidden_layers=4, vocab_size=40)
OPTIMIZER = dict(learning_rate=1e-2, beta1=0.9, beta2=0.95, epsilon=1e-6,
                 weight_decay=0.1, gradient_clip=0.0, warmup_steps=0)

CASES = {
    # Grouped queries, heads wider than hidden / heads, frequencies in all three
    # bands of llama3 scaling, an untied head, the older spelling.
    "grouped": dict(
        batch=8, sequence=13, seed=1,
        optimizer=dict(learning_rate=1e-2, beta1=0.9, beta2=0.95, epsilon=1e-8,
                       weight_decay=0.1, gradient_clip=0.0, warmup_steps=0),
        config=dict(
            architectures=["LlamaForCausalLM"], attention_bias=False,
            attention_dropout=0.0, bos_token_id=1, eos_token_id=2, head_dim=8,
            hidden_act="silu", hidden_size=24, initializer_range=0.2,
            intermediate_size=40, max_position_embeddings=512, mlp_bias=False,
            model_type="llama", num_attention_heads=4, num_hidden_layers=4,
            num_key_value_heads=2, pretraining_tp=1, rms_norm_eps=1e-5,
            rope_scaling=dict(factor=8.0, high_freq_factor=4.0,
                              low_freq_factor=1.0,
                              original_max_position_embeddings=64,
                              rope_type="llama3"),
            rope_theta=500.0, tie_word_embeddings=False, torch_dtype="float32",
            use_cache=True, vocab_size=61)),
    # A tied head, as many key-value heads as heads, the spelling of
    # transformers 5; warm-up and a clip that is always active.
    "tied": dict(
        batch=8, sequence=16, seed=2,
        optimizer=dict(learning_rate=2e-2, beta1=0.9, beta2=0.99, epsilon=1e-6,
                       weight_decay=0.05, gradient_clip=0.5, warmup_steps=4),
        config=dict(
            architectures=["LlamaForCausalLM"], attention_bias=False,
            attention_dropout=0.0, bos_token_id=1, dtype="float32",
            eos_token_id=2, hidden_act="silu", hidden_size=16,
            initializer_range=0.2, intermediate_size=24,
            max_position_embeddings=512, mlp_bias=False, model_type="llama",
            num_attention_heads=2, num_hidden_layers=2, num_key_value_heads=2,
            rms_norm_eps=1e-6,
            rope_parameters=dict(rope_theta=10000.0, rope_type="default"),
            tie_word_embeddings=True, vocab_size=48)),
    # Biases of query, key and value; a window in the last two layers.
    "qwen2": dict(
        batch=8, sequence=13, seed=3, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Qwen2ForCausalLM"], attention_dropout=0.0,
            hidden_act="silu", max_window_layers=2, model_type="qwen2",
            num_key_value_heads=2, rms_norm_eps=1e-6, rope_theta=1000.0,
            sliding_window=6, tie_word_embeddings=True, torch_dtype="float32",
            use_sliding_window=True)),
    # Norms of each head; heads wider than hidden / heads.
    "qwen3": dict(
        batch=8, sequence=13, seed=4, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Qwen3ForCausalLM"], attention_bias=False,
            attention_dropout=0.0, dtype="float32", head_dim=8,
            hidden_act="silu", layer_types=["full_attention"] * 4,
            model_type="qwen3", num_key_value_heads=1, rms_norm_eps=1e-6,
            rope_parameters=dict(rope_theta=1000.0, rope_type="default"),
            sliding_window=None, tie_word_embeddings=False,
            use_sliding_window=False)),
    # A window in every layer.
    "mistral": dict(
        batch=8, sequence=13, seed=5, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["MistralForCausalLM"], head_dim=8,
            hidden_act="silu", model_type="mistral", num_key_value_heads=2,
            rms_norm_eps=1e-5, rope_theta=1000.0, sliding_window=5,
            tie_word_embeddings=False, torch_dtype="float32")),
    # Norms of outputs, and of the whole query and key.
    "olmo2": dict(
        batch=8, sequence=13, seed=6, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Olmo2ForCausalLM"], attention_bias=False,
            attention_dropout=0.0, hidden_act="silu", model_type="olmo2",
            num_key_value_heads=2, rms_norm_eps=1e-6, rope_scaling=None,
            rope_theta=1000.0, tie_word_embeddings=False,
            torch_dtype="float32")),
    # Frequencies kept, interpolated and divided, by YaRN's published settings.
    "yarn": dict(
        batch=8, sequence=13, seed=10, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Qwen3ForCausalLM"], attention_bias=False,
            head_dim=16, hidden_act="silu", model_type="qwen3",
            num_attention_heads=2, num_key_value_heads=1,
            rms_norm_eps=1e-6,
            rope_scaling=dict(factor=4.0, original_max_position_embeddings=64,
                              rope_type="yarn"),
            rope_theta=100.0, tie_word_embeddings=True,
            torch_dtype="float32", use_sliding_window=False)),
    # Only the first pairs of a head turn. Of transformers' models of our
    # families no other kind honours `partial_rotary_factor`.
    "proportional": dict(
        batch=8, sequence=13, seed=17, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["LlamaForCausalLM"], attention_bias=False,
            head_dim=8, hidden_act="silu", mlp_bias=False, model_type="llama",
            num_key_value_heads=2, rms_norm_eps=1e-6,
            rope_parameters=dict(factor=2.0, partial_rotary_factor=0.7,
                                 rope_theta=100.0, rope_type="proportional"),
            tie_word_embeddings=False, torch_dtype="float32")),
    # Sequences longer than the model's context.
    "dynamic": dict(
        batch=8, sequence=13, seed=20, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["LlamaForCausalLM"], attention_bias=False,
            head_dim=8, hidden_act="silu", max_position_embeddings=6,
            mlp_bias=False, model_type="llama", num_key_value_heads=2,
            rms_norm_eps=1e-6,
            rope_scaling=dict(factor=3.0, rope_type="dynamic"),
            rope_theta=100.0, tie_word_embeddings=False,
            torch_dtype="float32")),
    # A bias of each projection.
    "biased": dict(
        batch=8, sequence=13, seed=19, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["LlamaForCausalLM"], attention_bias=True,
            attention_dropout=0.0, hidden_act="silu", mlp_bias=True,
            model_type="llama", num_key_value_heads=2, rms_norm_eps=1e-6,
            rope_theta=1000.0, tie_word_embeddings=False,
            torch_dtype="float32")),
    # More positions than the sequence has; the keys of the published file.
    "gpt2": dict(
        batch=8, sequence=13, seed=7, optimizer=OPTIMIZER,
        config=dict(
            activation_function="gelu_new", architectures=["GPT2LMHeadModel"],
            attn_pdrop=0.1, bos_token_id=1, embd_pdrop=0.1, eos_token_id=1,
            initializer_range=0.2, layer_norm_epsilon=1e-5, model_type="gpt2",
            n_ctx=32, n_embd=16, n_head=4, n_layer=4, n_positions=32,
            resid_pdrop=0.1, summary_activation=None, summary_type="cls_index",
            vocab_size=40)),
    # Exact GELU, a wider feed-forward, a head of its own.
    "gpt2-gelu": dict(
        batch=8, sequence=13, seed=8, optimizer=OPTIMIZER,
        config=dict(
            activation_function="gelu", architectures=["GPT2LMHeadModel"],
            initializer_range=0.2, layer_norm_epsilon=1e-5, model_type="gpt2",
            n_embd=12, n_head=2, n_inner=40, n_layer=4, n_positions=13,
            tie_word_embeddings=False, vocab_size=40)),
    # Caps of scores and logits, windows in every second layer. Without
    # padding: transformers gives the padding token's embedding no gradient.
    "gemma2": dict(
        batch=8, sequence=13, seed=9, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Gemma2ForCausalLM"], attention_bias=False,
            attention_dropout=0.0, attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0, head_dim=8,
            hidden_act="gelu_pytorch_tanh",
            hidden_activation="gelu_pytorch_tanh", model_type="gemma2",
            num_key_value_heads=2, pad_token_id=None, query_pre_attn_scalar=12,
            rms_norm_eps=1e-6, rope_theta=1000.0, sliding_window=6,
            torch_dtype="float32")),
    # Rotary settings by kind of layer in the older spelling, a pattern that
    # the layers end within.
    "gemma3": dict(
        batch=8, sequence=13, seed=11, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Gemma3ForCausalLM"], attention_bias=False,
            attention_dropout=0.0, head_dim=8,
            hidden_activation="gelu_pytorch_tanh", model_type="gemma3_text",
            num_key_value_heads=1, pad_token_id=None,
            query_pre_attn_scalar=12, rms_norm_eps=1e-6,
            rope_local_base_freq=100.0,
            rope_scaling=dict(factor=2.0, rope_type="linear"),
            rope_theta=1000.0, sliding_window=6, sliding_window_pattern=3,
            torch_dtype="float32")),
    # Experts in every layer, under the names of published files.
    "mixtral": dict(
        batch=8, sequence=13, seed=13, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["MixtralForCausalLM"], attention_dropout=0.0,
            hidden_act="silu", model_type="mixtral", num_experts_per_tok=2,
            num_key_value_heads=2, num_local_experts=4,
            output_router_logits=False, rms_norm_eps=1e-5, rope_theta=1000.0,
            router_aux_loss_coef=0.02, sliding_window=None,
            tie_word_embeddings=False, torch_dtype="float32")),
    # The load balance in the loss. One layer: transformers takes the balance of
    # all layers' tokens together.
    "mixtral-balance": dict(
        batch=4, sequence=13, seed=15, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["MixtralForCausalLM"], hidden_act="silu",
            model_type="mixtral", num_experts_per_tok=2, num_hidden_layers=1,
            num_key_value_heads=2, num_local_experts=4,
            output_router_logits=True, rms_norm_eps=1e-5, rope_theta=1000.0,
            router_aux_loss_coef=0.5, tie_word_embeddings=False,
            torch_dtype="float32")),
    # Dense layers between those with experts, weights that do not add up to 1.
    "qwen3-moe": dict(
        batch=8, sequence=13, seed=14, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["Qwen3MoeForCausalLM"], attention_bias=False,
            attention_dropout=0.0, decoder_sparse_step=1, head_dim=8,
            hidden_act="silu", max_window_layers=4, mlp_only_layers=[2],
            model_type="qwen3_moe", moe_intermediate_size=10,
            norm_topk_prob=False, num_experts=6, num_experts_per_tok=3,
            num_key_value_heads=2, output_router_logits=False,
            rms_norm_eps=1e-6, rope_theta=1000.0, sliding_window=None,
            tie_word_embeddings=False, torch_dtype="float32",
            use_sliding_window=False)),
    # Sinks, biases, experts stored as one tensor, bounds of YaRN between pairs,
    # a limit that clamps.
    "gpt-oss": dict(
        batch=8, sequence=13, seed=16, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["GptOssForCausalLM"], attention_bias=True,
            attention_dropout=0.0, head_dim=8, hidden_act="silu",
            model_type="gpt_oss", num_experts_per_tok=2, num_key_value_heads=2,
            num_local_experts=4, output_router_logits=False, rms_norm_eps=1e-5,
            rope_scaling=dict(beta_fast=32.0, beta_slow=1.0, factor=4.0,
                              original_max_position_embeddings=64,
                              rope_type="yarn", truncate=False),
            rope_theta=100.0, router_aux_loss_coef=0.9, sliding_window=5,
            swiglu_limit=0.5, tie_word_embeddings=False,
            torch_dtype="float32")),
    # Latent attention with YaRN, one dense layer, groups of experts of which
    # half are chosen by biased scores, a shared expert. The epsilon is not that
    # of the latents' norms, 1e-6.
    "deepseek": dict(
        batch=8, sequence=13, seed=12, optimizer=OPTIMIZER,
        config=dict(
            SIZES, architectures=["DeepseekV3ForCausalLM"],
            attention_bias=False, attention_dropout=0.0,
            first_k_dense_replace=1, hidden_act="silu", kv_lora_rank=10,
            model_type="deepseek_v3", moe_intermediate_size=12, n_group=2,
            n_routed_experts=8, n_shared_experts=1, norm_topk_prob=True,
            num_experts_per_tok=2, num_key_value_heads=4,
            num_nextn_predict_layers=0, q_lora_rank=12, qk_nope_head_dim=6,
            qk_rope_head_dim=4, rms_norm_eps=1e-5, rope_interleave=True,
            rope_scaling=dict(beta_fast=32, beta_slow=1, factor=4.0,
                              mscale=1.0, mscale_all_dim=1.0,
                              original_max_position_embeddings=64,
                              type="yarn"),
            rope_theta=100.0, routed_scaling_factor=2.5,
            tie_word_embeddings=False, topk_group=1, torch_dtype="float32",
            v_head_dim=5)),
}
# A module of multi-token prediction behind the layers.
CASES["deepseek-mtp"] = dict(
    CASES["deepseek"], seed=18, config=dict(
        CASES["deepseek"]["config"], num_nextn_predict_layers=1))
MTP_WEIGHT = 0.3


class Prediction(DeepseekV3DecoderLayer):
    """The module of multi-token prediction, which transformers lacks, as a
    layer behind the model's layers, by which transformers passes."""

    def __init__(self, config):
        super().__init__(config, config.num_hidden_layers)
        norm = type(self.input_layernorm)
        self.enorm = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.hnorm = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.eh_proj = torch.nn.Linear(2 * config.hidden_size,
                                       config.hidden_size, bias=False)
        self.shared_head = torch.nn.ModuleDict(
            dict(norm=norm(config.hidden_size, eps=config.rms_norm_eps)))


def add_prediction(model):
    """Appends the module where the configuration has one."""
    if getattr(model.config, "num_nextn_predict_layers", 0):
        model.model.layers.append(Prediction(model.config))
    return model


def prediction_loss(model, states, tokens):
    """The sum over t[i + 2] out of the final norm's states at t[i], over the
    number of all targets (DeepSeek-V3, equation 24)."""
    module = model.model.layers[-1]
    inputs, length = tokens[:, 1:-1], tokens.shape[1] - 2
    joined = torch.cat([module.enorm(model.model.embed_tokens(inputs)),
                        module.hnorm(states[:, :-1])], dim=-1)
    positions = torch.arange(length)[None]
    mask = torch.full((length, length), -math.inf, dtype=torch.float64).triu(1)
    state = module(module.eh_proj(joined), attention_mask=mask[None, None],
                   position_ids=positions,
                   position_embeddings=model.model.rotary_emb(joined, positions))
    logits = model.lm_head(module.shared_head["norm"](state))
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), tokens[:, 2:].flatten(),
        reduction="sum") / tokens[:, 1:].numel()


def hub_tensors(model_type, tensors):
    """Tensors by the names of hubs, which hold one for each expert and matrix;
    transformers keeps those of all experts as one."""
    matrices = {"mixtral": ("block_sparse_moe", "w1", "w3", "w2")}.get(
        model_type, ("mlp", "gate_proj", "up_proj", "down_proj"))
    result = {}
    for name, tensor in tensors.items():
        outer, stacked, inner = name.partition("mlp.experts.")
        if not stacked or model_type == "gpt_oss":
            name = name.replace("mlp.gate.", matrices[0] + ".gate.")
            result[name] = tensor
            continue
        names = matrices[1:3] if inner.endswith("gate_up_proj") else matrices[3:]
        for expert, matrix in enumerate(tensor):
            for part, rows in zip(names, matrix.chunk(len(names))):
                result[f"{outer}{matrices[0]}.experts.{expert}.{part}.weight"] = (
                    rows.clone())
    return result


def write_model(folder, case):
    """Writes config.json and f32 weights: normal, around what they start at."""
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(case["config"], file, indent=2, sort_keys=True)
        file.write("\n")
    with open(os.path.join(folder, "run.json"), "w") as file:
        json.dump({"steps": STEPS,
                   "write": ["loss", "logits", "gradients", "loss-curve"],
                   **{name.replace("_", "-"): value
                      for name, value in case["optimizer"].items()}},
                  file, indent=2)
        file.write("\n")
    torch.manual_seed(case["seed"])
    model = add_prediction(
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)))
    weights = {}
    for name, parameter in model.named_parameters():
        scale, mean = (case["config"]["initializer_range"], 0.0)
        if parameter.dim() == 1:
            scale, mean = 0.1, parameter.mean().item()  # a gain or a bias
        weights[name] = (mean + scale * torch.randn(parameter.shape)).float()
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            weights[name] = 0.3 * torch.randn(buffer.shape)
    stored = hub_tensors(case["config"]["model_type"], weights)
    if len(getattr(model.base_model, "layers", ())) > (
            model.config.num_hidden_layers):
        # Published files have the module's table and head twice.
        prefix = f"model.layers.{model.config.num_hidden_layers}."
        for copy, name in [("embed_tokens", "model.embed_tokens"),
                           ("shared_head.head", "lm_head")]:
            stored[prefix + copy + ".weight"] = stored[name + ".weight"].clone()
    save_file(stored, os.path.join(folder, "model.safetensors"),
              metadata={"format": "pt"})
    return weights


class WideFloat:
    """While it is open, transformers' explicit casts to f32 are casts to f64."""

    def __enter__(self):
        self.saved = torch.float, torch.float32, torch.Tensor.float
        torch.float = torch.float32 = torch.float64
        torch.Tensor.float = torch.Tensor.double

    def __exit__(self, *_):
        torch.float, torch.float32, torch.Tensor.float = self.saved


def load_wide(folder, weights):
    """The model with its f32 weights, everything else in f64. Those of a module
    of prediction come out of `weights`; transformers does not read them."""
    narrow = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", experts_implementation="eager",
        dtype=torch.float32)
    with WideFloat():
        model = add_prediction(type(narrow)(narrow.config)).double()
    state = narrow.state_dict()
    for name in model.state_dict().keys() - state.keys():
        state[name] = weights[name]
    model.load_state_dict({name: value.double()
                           for name, value in state.items()})
    model.config._attn_implementation = "eager"
    model.config._experts_implementation = "eager"
    model.eval()  # without dropout
    if hasattr(model.base_model, "rotary_emb"):
        check_frequencies(model.base_model.rotary_emb, narrow.config)
    return model


def check_frequencies(rotary, config):
    """The second frequency is theta^(-2 / head_dim) where nothing scales it:
    rounded to f32 it would be off by 1e-8."""
    kinds = {"": config.rope_parameters}
    if "full_attention" in config.rope_parameters:
        kinds = {kind + "_": settings
                 for kind, settings in config.rope_parameters.items()}
    size = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads)
    for prefix, settings in kinds.items():
        inverse = getattr(rotary, prefix + "inv_freq")
        assert inverse.dtype == torch.float64
        if settings["rope_type"] == "default":
            exact = settings["rope_theta"] ** (-2.0 / size)
            assert abs(inverse[1].item() / exact - 1) < 1e-14


def loss_of(model, tokens):
    """The logits, the loss, and the loss's parts where terms are added."""
    with WideFloat():
        outputs = model(input_ids=tokens[:, :-1], use_cache=False,
                        output_hidden_states=True)
    logits = outputs.logits
    assert logits.dtype == torch.float64
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))
    if getattr(model.config, "output_router_logits", False):
        assert outputs.aux_loss.dtype == torch.float64
        loss = loss + model.config.router_aux_loss_coef * outputs.aux_loss
    parts = {}
    if getattr(model.config, "num_nextn_predict_layers", 0):
        states = outputs.hidden_states[-1]
        assert torch.equal(model.lm_head(states), logits)
        with WideFloat():
            parts = {"main": loss,
                     "mtp": MTP_WEIGHT * prediction_loss(model, states,
                                                         tokens)}
        loss = parts["main"] + parts["mtp"]
    return logits, loss, parts


def train(model, tokens, options):
    """Losses before each AdamW step; constant rate after the warm-up."""
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [dict(params=[p for p in parameters if p.dim() >= 2],
              weight_decay=options["weight_decay"]),
         dict(params=[p for p in parameters if p.dim() < 2], weight_decay=0.0)],
        lr=options["learning_rate"], eps=options["epsilon"],
        betas=(options["beta1"], options["beta2"]))
    losses = []
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        _, loss, _ = loss_of(model, tokens)
        loss.backward()
        losses.append(loss.item())
        if options["gradient_clip"] > 0:
            norm = torch.nn.utils.clip_grad_norm_(parameters,
                                                  options["gradient_clip"])
            assert norm > options["gradient_clip"]
        share = (step / options["warmup_steps"]
                 if step < options["warmup_steps"] else 1.0)
        for group in optimizer.param_groups:
            group["lr"] = share * options["learning_rate"]
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64)


def write_golden(folder, case, weights):
    generator = torch.Generator().manual_seed(100 + case["seed"])
    tokens = torch.randint(case["config"]["vocab_size"],
                           (case["batch"], case["sequence"] + 1),
                           generator=generator)
    save_file({"tokens": tokens.to(torch.int32)},
              os.path.join(folder, "tokens.safetensors"))
    model = load_wide(folder, weights)
    logits, loss, parts = loss_of(model, tokens)
    loss.backward()
    golden = {"logits": logits.detach().float(), "loss": loss.detach().clone()}
    for name, part in parts.items():
        golden["loss." + name] = part.detach().clone()
    gradients = {name: parameter.grad.float().clone()
                 for name, parameter in model.named_parameters()}
    for name, gradient in hub_tensors(model.config.model_type,
                                      gradients).items():
        golden["grad." + name] = gradient
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):  # nothing trains it
            golden["grad." + name] = torch.zeros(buffer.shape)
    golden["loss_curve"] = train(model, tokens, case["optimizer"])
    assert math.isclose(golden["loss_curve"][0], loss.item())
    save_file(golden, os.path.join(folder, "golden.safetensors"))
    print(folder, "loss", [round(x, 4) for x in golden["loss_curve"].tolist()])


def main():
    for name in sys.argv[1:] or CASES:
        case = CASES[name]
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        write_golden(folder, case, write_model(folder, case))


if __name__ == "__main__":
    main()
