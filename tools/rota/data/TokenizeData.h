// SPDX-License-Identifier: Apache-2.0
//
// Texts as tokens, for `rota tokenize` and for the data of a run.
#ifndef ROTA_TOOLS_ROTA_TOKENIZEDATA_H
#define ROTA_TOOLS_ROTA_TOKENIZEDATA_H

#include "runtime/tokenizer/files/TokenizeFiles.h"
#include "tools/rota/options/RunOptions.h"

namespace rota {

/// What the options say of texts, without files and output. Throws InputError.
TokenizeRequest textRequest(const RunOptions &options,
                            const Tokenizer &tokenizer);

/// The type of the tokens: "uint16".
const char *typeOf(const TokenizeSummary &summary);

/// "1,234 tokens as uint16 out of 5,678 bytes of text", and the lines that were
/// left out, if any.
std::string describe(const TokenizeSummary &summary);

/// Prints a line that replaces itself, on a terminal.
void showProgress(const TokenProgress &progress, double share);
/// Ends that line.
void endProgress();

/// Finds the end token of documents that 'document-mask', where given, keeps
/// apart: that of the tokenizer, or a number. Prints an error.
ExitCode findDocumentEnd(RunOptions &options);

/// Makes tokens of the texts among a run's data, or finds them where an earlier
/// run kept them, and puts their files in the place of the texts: trainers read
/// tokens alone. Finds the end token of documents, too, unless it is known.
/// Prints an error.
ExitCode tokenizeData(RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_TOKENIZEDATA_H
