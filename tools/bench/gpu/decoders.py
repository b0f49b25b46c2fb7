# SPDX-License-Identifier: Apache-2.0
"""Llama and GPT-2 in plain torch.nn, written for speed: query, key and value are one product, and so are gate and up.
Parameters are f32; each use casts them to the type of the computation, in which the residual stream is too."""
import json
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

# The names of hub files by this file's parameter; several are joined along the outputs.
LLAMA_NAMES = {
    "embedding.weight": ["model.embed_tokens.weight"],
    "norm.weight": ["model.norm.weight"],
    "head": ["lm_head.weight"],
    "layers.#.norm1.weight": ["model.layers.#.input_layernorm.weight"],
    "layers.#.attention.joined.weight": [f"model.layers.#.self_attn.{part}_proj.weight" for part in "qkv"],
    "layers.#.attention.out.weight": ["model.layers.#.self_attn.o_proj.weight"],
    "layers.#.norm2.weight": ["model.layers.#.post_attention_layernorm.weight"],
    "layers.#.inner.weight": [f"model.layers.#.mlp.{part}_proj.weight" for part in ("gate", "up")],
    "layers.#.outer.weight": ["model.layers.#.mlp.down_proj.weight"],
}
GPT2_NAMES = {
    "embedding.weight": ["transformer.wte.weight"],
    "positions": ["transformer.wpe.weight"],
    "head": ["lm_head.weight"],
} | {
    f"{name}.{kind}": [f"transformer.{source}.{kind}"]
    for kind in ("weight", "bias")
    for name, source in [("norm", "ln_f"), ("layers.#.norm1", "h.#.ln_1"), ("layers.#.norm2", "h.#.ln_2"),
                         ("layers.#.attention.joined", "h.#.attn.c_attn"), ("layers.#.attention.out", "h.#.attn.c_proj"),
                         ("layers.#.inner", "h.#.mlp.c_fc"), ("layers.#.outer", "h.#.mlp.c_proj")]
}


@dataclass
class Config:
    is_gpt2: bool
    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    head_size: int
    inner: int
    epsilon: float
    deviation: float
    tied: bool
    positions: int
    theta: float

    @property
    def rows(self):
        """The vocabulary as products have it, a multiple of 128: 50257 tokens get 50304 rows, as in llm.c."""
        return -(-self.vocabulary // 128) * 128


def read_config(path):
    with open(path) as file:
        keys = json.load(file)
    family = keys["model_type"]
    if family == "gpt2":
        width, heads = keys["n_embd"], keys["n_head"]
        return Config(True, keys["vocab_size"], width, keys["n_layer"], heads, heads, width // heads,
                      keys.get("n_inner") or 4 * width, keys.get("layer_norm_epsilon", 1e-5),
                      keys.get("initializer_range", 0.02), keys.get("tie_word_embeddings", True),
                      keys.get("n_positions", 1024), 0.0)
    if family != "llama":
        raise SystemExit(f"error: {path}: expected 'model_type' llama or gpt2, got '{family}'")
    rotary = keys.get("rope_parameters") or {}
    if keys.get("rope_scaling") or rotary.get("rope_type", "default") != "default":
        raise SystemExit(f"error: {path}: rotary embeddings that are stretched are not supported")
    width, heads = keys["hidden_size"], keys["num_attention_heads"]
    return Config(False, keys["vocab_size"], width, keys["num_hidden_layers"], heads,
                  keys.get("num_key_value_heads") or heads, keys.get("head_dim") or width // heads,
                  keys["intermediate_size"], keys.get("rms_norm_eps", 1e-6), keys.get("initializer_range", 0.02),
                  keys.get("tie_word_embeddings", False), 0, rotary.get("rope_theta", keys.get("rope_theta", 1e4)))


class Linear(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class Norm(nn.Module):
    """RMS norm, or layer norm with a bias; in f32, and rounded once."""

    def __init__(self, config):
        super().__init__()
        self.epsilon = config.epsilon
        self.weight = nn.Parameter(torch.ones(config.width))
        self.bias = nn.Parameter(torch.zeros(config.width)) if config.is_gpt2 else None

    def forward(self, x):
        if self.bias is None:
            return F.rms_norm(x.float(), self.weight.shape, self.weight, self.epsilon).to(x.dtype)
        return F.layer_norm(x.float(), self.weight.shape, self.weight, self.bias, self.epsilon).to(x.dtype)


def rotated(x, cosines, sines):
    """[batch, sequence, heads, size] turned by the [sequence, 1, size / 2] angles."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.sizes = [config.heads, config.key_heads, config.key_heads]
        self.head_size = config.head_size
        self.joined = Linear(config.width, sum(self.sizes) * config.head_size, bias=config.is_gpt2)
        self.out = Linear(config.heads * config.head_size, config.width, bias=config.is_gpt2)

    def forward(self, x, angles):
        batch, sequence, _ = x.shape
        q, k, v = self.joined(x).view(batch, sequence, -1, self.head_size).split(self.sizes, dim=2)
        if angles is not None:
            q, k = rotated(q, *angles), rotated(k, *angles)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                           enable_gqa=self.sizes[0] != self.sizes[1])
        return self.out(y.transpose(1, 2).reshape(batch, sequence, -1))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.is_gated = not config.is_gpt2
        self.norm1, self.norm2 = Norm(config), Norm(config)
        self.attention = Attention(config)
        self.inner = Linear(config.width, (2 if self.is_gated else 1) * config.inner, bias=config.is_gpt2)
        self.outer = Linear(config.inner, config.width, bias=config.is_gpt2)

    def forward(self, x, angles):
        x = x + self.attention(self.norm1(x), angles)
        inner = self.inner(self.norm2(x))
        if self.is_gated:
            gate, up = inner.chunk(2, dim=-1)
            return x + self.outer(F.silu(gate) * up)
        return x + self.outer(F.gelu(inner, approximate="tanh"))


def loss_of(x, head, targets, vocabulary):
    """The sum of cross-entropies. Compiled, logits are kept in the type of x alone."""
    logits = F.linear(x, head.to(x.dtype))[..., :vocabulary]
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="sum")


class Decoder(nn.Module):
    """The mean loss of tokens [batch, sequence] and targets. Parts may be replaced by compiled ones."""

    def __init__(self, config, sequence, dtype):
        super().__init__()
        self.config, self.dtype = config, dtype
        self.embedding = nn.Embedding(config.rows, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = Norm(config)
        self.head = None if config.tied else nn.Parameter(torch.empty(config.rows, config.width))
        self.positions = nn.Parameter(torch.empty(config.positions, config.width)) if config.is_gpt2 else None
        self.loss_of = loss_of
        self.loss_parts = 1
        if not config.is_gpt2:
            steps = torch.arange(0, config.head_size, 2, dtype=torch.float64) / config.head_size
            angles = torch.outer(torch.arange(sequence, dtype=torch.float64), config.theta ** -steps).unsqueeze(1)
            self.register_buffer("cosines", angles.cos().float(), persistent=False)
            self.register_buffer("sines", angles.sin().float(), persistent=False)
        self.initialize()

    def initialize(self):
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() > 1:
                residual = self.config.is_gpt2 and name.endswith(("out.weight", "outer.weight"))
                nn.init.normal_(parameter, std=self.config.deviation /
                                (math.sqrt(2 * self.config.layers) if residual else 1))

    def load(self, weights):
        """Takes weights by their names in hub files."""
        is_gpt2 = self.config.is_gpt2
        for name, parameter in self.named_parameters():
            pieces = name.split(".")
            number = pieces[1] if pieces[0] == "layers" else ""
            pattern = name.replace(f".{number}.", ".#.", 1) if number else name
            parts = [weights[source.replace("#", number)] for source in (GPT2_NAMES if is_gpt2 else LLAMA_NAMES)[pattern]]
            value = torch.cat(parts)
            if is_gpt2 and number and value.dim() == 2:
                value = value.t()
            with torch.no_grad():
                parameter.zero_()
                parameter[:value.shape[0]].copy_(value)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions[:tokens.shape[1]]
        x = x.to(self.dtype)
        angles = None if self.config.is_gpt2 else (self.cosines, self.sines)
        for layer in self.layers:
            x = layer(x, angles)
        x = self.norm(x)
        head = self.embedding.weight if self.head is None else self.head
        if self.loss_parts == 1:
            loss = self.loss_of(x, head, targets, self.config.vocabulary)
        else:  # logits of one part at a time, again in the backward pass
            loss = sum(checkpoint(self.loss_of, part, head, wanted, self.config.vocabulary, use_reentrant=False)
                       for part, wanted in zip(x.chunk(self.loss_parts), targets.chunk(self.loss_parts)))
        return loss / targets.numel()

    def compile_parts(self):
        """Compiles a layer and the loss: fast for many layers, which share the code, but nothing is fused across."""
        for layer in self.layers:
            layer.compile(dynamic=False, fullgraph=True)
        self.loss_of = torch.compile(loss_of, dynamic=False, fullgraph=True)
