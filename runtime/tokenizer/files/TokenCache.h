// SPDX-License-Identifier: Apache-2.0
//
// Files of tokens that are kept for the next run with the same texts. The name
// of one has a number for the texts' bytes, the tokenizer and all that the
// tokens depend on, so another text or tokenizer has another file:
//     NAME-KEY.npy         the tokens, and NAME-KEY.npy.mask
//     NAME-KEY.source      the number of the bytes of files as the file system
//                          knows them, so that they are not read again
// Of a name, the kKeptTokens that were used last are kept. Processes that want
// the same tokens wait for the first of them.
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENCACHE_H
#define ROTA_RUNTIME_TOKENIZER_TOKENCACHE_H

#include "runtime/tokenizer/files/TokenizeFiles.h"

namespace rota {

/// Files of tokens with one name that a folder keeps: texts that changed, and
/// tokenizers and flags that are tried, leave others.
inline constexpr size_t kKeptTokens = 8;

struct CachedTokens {
  std::string path;
  std::optional<TokenizeSummary> made; // nothing: they were there
};

/// The folder beside a file or in a folder of texts.
std::string cacheFolderOf(const std::string &item);

/// The tokens of a request, without its output, in `folder`, which is made;
/// when they are new, older ones of the same name go that are too many. `item`:
/// what the user calls the texts. Throws InputError as tokenizeFiles, and when
/// nothing can be written in the folder; RunError when a text changes
/// meanwhile.
CachedTokens cacheTokens(TokenizeRequest request, const std::string &folder,
                         const std::string &item);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENCACHE_H
