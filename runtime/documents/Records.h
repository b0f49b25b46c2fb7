// SPDX-License-Identifier: Apache-2.0
//
// A line of a .jsonl file as a document. A record is one of
//     {"text": "..."}                                a text, of any field
//     {"prompt": "...", "completion": "..."}         the completion counts
//     {"messages": [{"role": "user", "content": "..."}, ...]}
// whose content may be parts, {"type": "text", "text": "..."}. Tools and their
// calls are refused; other fields are ignored.
#ifndef ROTA_RUNTIME_DOCUMENTS_RECORDS_H
#define ROTA_RUNTIME_DOCUMENTS_RECORDS_H

#include "runtime/documents/ChatTemplate.h"

namespace rota {

struct RecordOptions {
  /// The field of texts. Empty: `text`, and records of the two other kinds are
  /// read as such.
  std::string field = {};
  std::optional<ChatForm> chat = {};
  std::string chatMissing = {}; // an error's message where `chat` is nothing
};

inline constexpr const char *kTextField = "text";

/// Throws InputError, whose message does not name the line, for what is no
/// record.
Document readRecord(std::string_view line, const RecordOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_DOCUMENTS_RECORDS_H
