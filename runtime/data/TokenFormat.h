// SPDX-License-Identifier: Apache-2.0
//
// The forms of token files. A file's first bytes, or an index beside it, say
// the form; a file of no known form is an array of tokens from its first byte.
// All numbers are in little endian.
//
// llm.c (dev/data/data_common.py of karpathy/llm.c, `write_datafile`): a header
// of 256 int32, of which the first three are the magic number, the version and
// the number of tokens; then the tokens.
//     magic 20240520, version 1: uint16 (GPT-2)
//     magic 20240801, version 7: uint32 (Llama 3)
//
// numpy (numpy.lib.format): `\x93NUMPY`, two bytes of version, the length of
// the header (uint16 in version 1, uint32 in 2 and 3), and the header, a Python
// dictionary with `descr`, `fortran_order` and `shape`; then the array, here of
// one dimension.
//
// Megatron (megatron/core/datasets/indexed_dataset.py of NVIDIA/Megatron-LM):
// see MegatronIndex.h.
#ifndef ROTA_RUNTIME_DATA_TOKENFORMAT_H
#define ROTA_RUNTIME_DATA_TOKENFORMAT_H

#include "runtime/data/DataFile.h"
#include "runtime/data/TokenType.h"

#include <optional>
#include <string>

namespace rota {

/// The tokens of a file: `tokens` of one type from byte `offset` to its end.
struct TokenLayout {
  TokenType type;
  int64_t offset;
  int64_t tokens;
};

/// Finds the layout of the file's tokens. `asked` is the type that the user
/// gives: it must agree with a header, and a file without one has this type, or
/// bytes. Throws InputError with the numbers when a header is cut off, does not
/// fit the file's size or is of an unknown version or type, when there is no
/// token, and for a name of documents or compressed text.
TokenLayout findTokens(const DataFile &file, std::optional<TokenType> asked);

/// Whether the file's first bytes, or an index beside it, say its form. Throws
/// InputError as findTokens.
bool saysForm(const DataFile &file);

/// Throws InputError unless the file ends with its tokens. `form` is the form's
/// name for the message.
void requireSize(const DataFile &file, const char *form,
                 const TokenLayout &layout);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENFORMAT_H
