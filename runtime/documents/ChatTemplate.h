// SPDX-License-Identifier: Apache-2.0
//
// Conversations as text, in the forms that families of models are trained with.
//
// A tokenizer_config.json says its form as a program of Jinja
// (`chat_template`). Jinja is not run: the templates of known families are
// functions in a table, and the program's text says by words in it which of
// them it is.
#ifndef ROTA_RUNTIME_DOCUMENTS_CHATTEMPLATE_H
#define ROTA_RUNTIME_DOCUMENTS_CHATTEMPLATE_H

#include "runtime/documents/Document.h"

#include <string_view>

namespace rota {

enum class ChatRole { System, User, Assistant };

struct ChatMessage {
  ChatRole role;
  std::string content;
  // Of an assistant.
  std::string reasoning = {};               // reasoning_content; empty: none
  std::optional<std::string> thinking = {}; // another name of it, in gpt-oss
};

struct ChatTemplate;

/// A template with the tokens that it names.
struct ChatForm {
  const ChatTemplate *family; // of the table
  std::string begin, end;     // bos_token, eos_token
};

/// The template of that name; null: there is none.
const ChatTemplate *findChatTemplate(std::string_view name);
/// The template that a program of Jinja is; null: it is none of the table.
const ChatTemplate *recognizeChatTemplate(std::string_view program);
const char *nameOf(const ChatTemplate &family);
/// "chatml, llama3, ...", for messages.
std::string chatTemplateNames();
/// Whether it writes eos_token.
bool needsEnd(const ChatTemplate &family);

/// The conversation as transformers' apply_chat_template writes it. Of an
/// assistant's turn counts what a model generates: what comes after the prompt
/// for generation, with the token that ends the turn. Throws InputError for
/// roles in an order that the template refuses.
Document render(const ChatForm &form, const std::vector<ChatMessage> &messages);

} // namespace rota

#endif // ROTA_RUNTIME_DOCUMENTS_CHATTEMPLATE_H
