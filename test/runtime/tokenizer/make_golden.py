#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Inputs/: small tokenizers, and tokens and texts that the Python
packages tokenizers and sentencepiece make with them.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
    python3 make_golden.py

CASE/tokenizer.json or CASE/tokenizer.model is the tokenizer, CASE/golden.json
has the version of the package and, for each text, its tokens and the text of
these tokens."""
import json
import os
import random
import tempfile

import sentencepiece
import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders as D, models,
                        normalizers as N, pre_tokenizers as P,
                        processors as T, trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "Inputs")
GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
WORDS = ("the model reads a text and writes tokens of it; every layer adds to "
         "what came before Größe élan naïve Привет мир καλημέρα 東京 日本語の "
         "def main(): return x + 1 // 42 don't we'll I'M 3.14159 [1, 2]").split(
             " ")
TEXTS = [
    "", " ", "  ", "\n", "Hello world", "  leading and trailing  ",
    "don't I'LL we'Ve 'S", "a\n\n\nb\r\n\r\nc \n d\t\te", "12345678 ½ ² ٣٤٥",
    "def f(x):\n    return x ** 2  # square\n", "Привет, мир! καλημέρα",
    "東京は日本の首都です。Ｔｏｋｙｏ", "👨‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️", "e\u0301 \u00e9 a\u0323\u030a Å ﬁ ①",
    "İstanbul ǅ ẞ ß", "\u200b\u00a0\u3000x\u2028y", "<s>x</s> <mask> y<|end|> ",
    "Word Words xWord Word", "=" * 70, "a" * 100, " " * 90 + "x", "\ufffd\ufffd",
    "\x00\x01\x7f\x85", "한국어 ไทย हिन्दी عربى עברית", "A\u1cf7\U00011f02\U00031350",
]


def corpus():
    source = random.Random(1)
    return [" ".join(source.choices(WORDS, k=12)) for _ in range(600)]


def random_texts(count):
    source = random.Random(2)
    blocks = [(32, 126), (9, 13), (0xc0, 0x24f), (0x300, 0x36f), (0x400, 0x4ff),
              (0x900, 0x97f), (0x2000, 0x2bff), (0x3040, 0x30ff),
              (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1f300, 0x1faff),
              (0, 0x10ffff)]
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(source.randint(1, 8)):
            block = source.choice(blocks)
            text += "".join(
                chr(c) for c in (source.randint(*block)
                                 for _ in range(source.randint(1, 6)))
                if not 0xd800 <= c <= 0xdfff)
            text += source.choice(["", " ", "  ", "\n"]) + source.choice(
                ["", *WORDS])
        texts.append(text)
    return texts


def write(case, encode, decode, package):
    lines = [json.dumps({"text": text, "tokens": encode(text),
                         "decoded": decode(encode(text))},
                        separators=(",", ":"))
             for text in TEXTS + random_texts(40)]
    with open(os.path.join(INPUTS, case, "golden.json"), "w") as file:
        file.write('{"package": "%s", "cases": [\n%s\n]}\n' %
                   (package, ",\n".join(lines)))


def save(case, tokenizer):
    os.makedirs(os.path.join(INPUTS, case), exist_ok=True)
    path = os.path.join(INPUTS, case, "tokenizer.json")
    tokenizer.save(path, pretty=False)
    tokenizer = Tokenizer.from_file(path)
    write(case, lambda text: tokenizer.encode(text).ids,
          lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
          "tokenizers " + tokenizers.__version__)


def byte_level(case, split, normalizer=None, prefix=False, special=("<|end|>",),
               **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    bytes_alone = P.ByteLevel(add_prefix_space=prefix, use_regex=split is None)
    tokenizer.pre_tokenizer = bytes_alone if split is None else P.Sequence(
        [P.Split(Regex(split), "isolated"), bytes_alone])
    tokenizer.decoder = D.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=420, special_tokens=list(special), show_progress=False,
        initial_alphabet=P.ByteLevel.alphabet()))
    if prefix:
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
        tokenizer.add_tokens([AddedToken("Word", single_word=True)])
        tokenizer.post_processor = T.RobertaProcessing(("</s>", 1), ("<s>", 0))
    save(case, tokenizer)


def marks(case, metaspace):
    """BPE over sentencepiece's marks with byte fallback, as Llama 2."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    tokenizer.normalizer = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = P.Metaspace(prepend_scheme="never")
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=500, show_progress=False, limit_alphabet=70, special_tokens=[
            "<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]))
    content = json.loads(tokenizer.to_str())
    content["pre_tokenizer"] = None
    content["added_tokens"] = content["added_tokens"][:3]
    if metaspace:
        content["normalizer"] = None
        content["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁",
                                    "prepend_scheme": "first", "split": False}
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(),
                                    D.Fuse(), D.Strip(" ", 1, 0)])
    tokenizer.post_processor = T.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])
    save(case, tokenizer)


def clip():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>",
                                     end_of_word_suffix="</w>"))
    tokenizer.normalizer = N.Sequence(
        [N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()])
    tokenizer.pre_tokenizer = P.Sequence([
        P.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]"
                      r"|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        P.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = D.BPEDecoder()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=450, special_tokens=["<unk>"], end_of_word_suffix="</w>",
        initial_alphabet=P.ByteLevel.alphabet(), show_progress=False))
    save("clip", tokenizer)


def bert(case, lower):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = N.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = P.BertPreTokenizer()
    tokenizer.decoder = D.WordPiece(cleanup=lower)
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=["[UNK]", "[CLS]", "[SEP]"],
        show_progress=False))
    tokenizer.post_processor = T.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    save(case, tokenizer)


# Characters, and what they become; a small part of sentencepiece's nmt_nfkc.
RULES = "FF34\t54\nFF4F\t6F\nFB01\t66 69\n65 301\tE9\n3000\t20\n2460\t31\n"


def sentence_pieces(kind):
    case = "sentencepiece-" + kind
    os.makedirs(os.path.join(INPUTS, case), exist_ok=True)
    path = os.path.join(INPUTS, case, "tokenizer.model")
    rules = {"normalization_rule_name": "identity",
             "remove_extra_whitespaces": False}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table, open(
            path, "wb") as file:
        table.write(RULES)
        table.flush()
        if kind == "unigram":
            rules = {"normalization_rule_tsv": table.name}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus()), model_writer=file,
            model_type=kind, vocab_size=360, byte_fallback=True,
            num_threads=1, minloglevel=2, **rules)
    processor = sentencepiece.SentencePieceProcessor(path)
    write(case, processor.encode, processor.decode,
          "sentencepiece " + sentencepiece.__version__)
    return processor


def unigram(processor):
    from sentencepiece import sentencepiece_model_pb2
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(processor.serialized_model_proto())
    tokenizer = Tokenizer(models.Unigram(
        [(piece.piece, piece.score) for piece in model.pieces], 0, True))
    tokenizer.normalizer = N.Sequence([
        N.Precompiled(model.normalizer_spec.precompiled_charsmap),
        N.Strip(left=False, right=True), N.Replace(Regex(" {2,}"), "▁")])
    tokenizer.pre_tokenizer = P.Metaspace()
    tokenizer.decoder = D.Metaspace()
    save("unigram", tokenizer)


def odd():
    """Steps that no known model combines."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = N.Sequence([N.Nmt(), N.NFKD(), N.StripAccents(),
                                       N.Lowercase(), N.Strip()])
    tokenizer.pre_tokenizer = P.Sequence([
        P.Whitespace(), P.Digits(individual_digits=True),
        P.Split("e", "merged_with_previous"),
        P.Split(Regex("[aou]+"), "merged_with_next"),
        P.Split(Regex(r"\b"), "isolated"), P.Punctuation("contiguous"),
        P.UnicodeScripts(), P.FixedLength(5)])
    tokenizer.train_from_iterator(corpus(), trainers.WordLevelTrainer(
        special_tokens=["[UNK]"], show_progress=False))
    save("odd", tokenizer)


def main():
    byte_level("gpt2", None)
    byte_level("llama3", LLAMA3, ignore_merges=True)
    byte_level("qwen", QWEN, N.NFC())
    byte_level("roberta", None, prefix=True, special=("<s>", "</s>"))
    marks("llama2", metaspace=False)
    marks("metaspace", metaspace=True)
    clip()
    bert("bert-uncased", True)
    bert("bert-cased", False)
    odd()
    sentence_pieces("bpe")
    unigram(sentence_pieces("unigram"))


if __name__ == "__main__":
    main()
