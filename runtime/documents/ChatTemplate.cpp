// SPDX-License-Identifier: Apache-2.0
#include "runtime/documents/ChatTemplate.h"
#include "runtime/Error.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>
#include <utility>

namespace rota {

namespace {

/// Writes a document, and marks what counts.
class ChatWriter {
public:
  explicit ChatWriter(const ChatForm &form) : begin(form.begin), end(form.end) {
    document.counted.emplace();
    document.isRendered = true;
  }

  void write(std::string_view text) { document.text += text; }
  template <typename... Texts>
  void write(std::string_view a, const Texts &...others) {
    write(a);
    (write(std::string_view(others)), ...);
  }
  /// Text that counts.
  template <typename... Texts> void count(const Texts &...texts) {
    size_t from = document.text.size();
    (write(std::string_view(texts)), ...);
    document.counted->push_back({from, document.text.size()});
  }

  Document take() { return std::move(document); }

  const std::string &begin, &end; // tokens

private:
  Document document;
};

using Messages = std::span<const ChatMessage>;

/// Bytes of the white space of Python's str.strip() at `at`; 0: none.
size_t spaceBytes(std::string_view text, size_t at) {
  auto byte = [&](size_t n) {
    return at + n < text.size() ? static_cast<uint8_t>(text[at + n]) : 0;
  };
  int a = byte(0), b = byte(1), c = byte(2);
  if (a == ' ' || (a >= 0x09 && a <= 0x0D) || (a >= 0x1C && a <= 0x1F))
    return 1;
  if (a == 0xC2 && (b == 0x85 || b == 0xA0)) // U+0085, U+00A0
    return 2;
  bool isWide = (a == 0xE1 && b == 0x9A && c == 0x80) || // U+1680
                (a == 0xE2 && b == 0x80 &&
                 ((c >= 0x80 && c <= 0x8A) ||            // U+2000 to U+200A
                  c == 0xA8 || c == 0xA9 ||              // U+2028, U+2029
                  c == 0xAF)) ||                         // U+202F
                (a == 0xE2 && b == 0x81 && c == 0x9F) || // U+205F
                (a == 0xE3 && b == 0x80 && c == 0x80);   // U+3000
  return isWide ? 3 : 0;
}

std::string_view stripBegin(std::string_view text) {
  while (size_t bytes = spaceBytes(text, 0))
    text.remove_prefix(bytes);
  return text;
}

/// As Python's str.strip(), which Jinja's filter trim is.
std::string_view strip(std::string_view text) {
  text = stripBegin(text);
  for (size_t bytes = 1; bytes <= std::min<size_t>(3, text.size());)
    if (spaceBytes(text, text.size() - bytes) == bytes) {
      text.remove_suffix(bytes);
      bytes = 1;
    } else {
      ++bytes;
    }
  return text;
}

std::string_view stripBreaks(std::string_view text, bool begin, bool end) {
  while (begin && text.starts_with('\n'))
    text.remove_prefix(1);
  while (end && text.ends_with('\n'))
    text.remove_suffix(1);
  return text;
}

const char *roleName(ChatRole role) {
  constexpr const char *names[] = {"system", "user", "assistant"};
  return names[static_cast<int>(role)];
}

/// The first message's content, if it is the system's, which `messages` lose.
std::optional<std::string_view> takeSystem(Messages &messages) {
  if (messages.empty() || messages.front().role != ChatRole::System)
    return std::nullopt;
  std::string_view content = messages.front().content;
  messages = messages.subspan(1);
  return content;
}

/// Throws InputError unless users and assistants take turns.
void requireTurns(Messages messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    ChatRole expected = i % 2 == 0 ? ChatRole::User : ChatRole::Assistant;
    if (messages[i].role != expected)
      throw InputError(fmt::format(
          "expected user and assistant to take turns after at most one system "
          "message, as the chat template demands, got {} in the place of {}",
          roleName(messages[i].role), roleName(expected)));
  }
}

/// A turn of ChatML.
void writeChatMl(ChatWriter &out, const ChatMessage &message) {
  out.write("<|im_start|>", roleName(message.role), "\n");
  if (message.role == ChatRole::Assistant)
    out.count(message.content, "<|im_end|>");
  else
    out.write(message.content, "<|im_end|>");
  out.write("\n");
}

void renderChatMl(ChatWriter &out, Messages messages) {
  for (const ChatMessage &message : messages)
    writeChatMl(out, message);
}

/// ChatML that begins with the system's words, those of a default if need be.
void renderWithSystem(ChatWriter &out, Messages messages,
                      std::string_view words) {
  if (messages.empty() || messages.front().role != ChatRole::System)
    out.write("<|im_start|>system\n", words, "<|im_end|>\n");
  renderChatMl(out, messages);
}
void renderQwen2(ChatWriter &out, Messages messages) {
  renderWithSystem(out, messages, "You are a helpful assistant.");
}
void renderQwen25(ChatWriter &out, Messages messages) {
  renderWithSystem(
      out, messages,
      "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
}

/// An assistant's words and its reasoning, which may stand before them in tags.
ChatMessage splitReasoning(const ChatMessage &message) {
  constexpr std::string_view open = "<think>", close = "</think>";
  std::string_view content = message.content, reasoning = message.reasoning;
  size_t first = content.find(close);
  if (!reasoning.empty() || first == content.npos)
    return message;
  reasoning = stripBreaks(content.substr(0, first), false, true);
  if (size_t at = reasoning.rfind(open); at != reasoning.npos)
    reasoning.remove_prefix(at + open.size());
  content.remove_prefix(content.rfind(close) + close.size());
  return {message.role, std::string(stripBreaks(content, true, false)),
          std::string(stripBreaks(reasoning, true, false)), std::nullopt};
}

/// Only turns after the last question keep their reasoning.
void renderQwen3(ChatWriter &out, Messages messages) {
  constexpr std::string_view open = "<tool_response>",
                             close = "</tool_response>";
  size_t last = messages.size() - 1;
  for (size_t i = messages.size(); i-- > 0;) {
    std::string_view content = messages[i].content;
    if (messages[i].role == ChatRole::User &&
        !(content.starts_with(open) && content.ends_with(close))) {
      last = i;
      break;
    }
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != ChatRole::Assistant) {
      writeChatMl(out, messages[i]);
      continue;
    }
    ChatMessage message = splitReasoning(messages[i]);
    bool hasTags =
        i > last && (i + 1 == messages.size() || !message.reasoning.empty());
    out.write("<|im_start|>assistant\n");
    if (hasTags)
      out.count("<think>\n", stripBreaks(message.reasoning, true, true),
                "\n</think>\n\n", stripBreaks(message.content, true, false),
                "<|im_end|>");
    else
      out.count(message.content, "<|im_end|>");
    out.write("\n");
  }
}

void writeLlama3(ChatWriter &out, const ChatMessage &message) {
  out.write("<|start_header_id|>", roleName(message.role),
            "<|end_header_id|>\n\n");
  if (message.role == ChatRole::Assistant)
    out.count(strip(message.content), "<|eot_id|>");
  else
    out.write(strip(message.content), "<|eot_id|>");
}

void renderLlama3(ChatWriter &out, Messages messages) {
  out.write(out.begin);
  for (const ChatMessage &message : messages)
    writeLlama3(out, message);
}

/// The date is the template's own default.
void renderLlama31(ChatWriter &out, Messages messages) {
  std::string_view system = strip(takeSystem(messages).value_or(""));
  out.write(out.begin, "<|start_header_id|>system<|end_header_id|>\n\n",
            "Cutting Knowledge Date: December 2023\n",
            "Today Date: 26 Jul 2024\n\n", system, "<|eot_id|>");
  for (const ChatMessage &message : messages)
    writeLlama3(out, message);
}

void renderLlama2(ChatWriter &out, Messages messages) {
  std::optional<std::string_view> system = takeSystem(messages);
  requireTurns(messages);
  for (size_t i = 0; i < messages.size(); ++i) {
    std::string content = messages[i].content;
    if (i == 0 && system)
      content = fmt::format("<<SYS>>\n{}\n<</SYS>>\n\n{}", *system, content);
    if (messages[i].role == ChatRole::User)
      out.write(out.begin, "[INST] ", strip(content), " [/INST]");
    else
      out.count(" ", strip(content), " ", out.end);
  }
}

/// The first versions: no system message.
void renderMistral(ChatWriter &out, Messages messages, std::string_view after) {
  requireTurns(messages);
  out.write(out.begin);
  for (const ChatMessage &message : messages)
    if (message.role == ChatRole::User) {
      out.write("[INST] ", message.content, " [/INST]");
    } else {
      out.count(message.content, out.end);
      out.write(after);
    }
}
void renderMistral1(ChatWriter &out, Messages messages) {
  renderMistral(out, messages, " ");
}
void renderMistral2(ChatWriter &out, Messages messages) {
  renderMistral(out, messages, "");
}

/// The system's words stand in the last message, if that is the user's.
void renderMistralSystem(ChatWriter &out, Messages messages, bool hasSpaces) {
  std::optional<std::string_view> system = takeSystem(messages);
  requireTurns(messages);
  out.write(out.begin);
  for (const ChatMessage &message : messages) {
    if (message.role == ChatRole::Assistant) {
      if (hasSpaces)
        out.count(" ", strip(message.content), out.end);
      else
        out.count(message.content, out.end);
      continue;
    }
    out.write(hasSpaces ? "[INST] " : "[INST]");
    if (system && &message == &messages.back())
      out.write(*system, "\n\n");
    out.write(message.content, "[/INST]");
  }
}
void renderMistral3(ChatWriter &out, Messages messages) {
  renderMistralSystem(out, messages, true);
}
void renderMistralNemo(ChatWriter &out, Messages messages) {
  renderMistralSystem(out, messages, false);
}

void renderGemma(ChatWriter &out, Messages messages, std::string_view first) {
  requireTurns(messages);
  out.write(out.begin);
  for (const ChatMessage &message : messages) {
    bool isAnswer = message.role == ChatRole::Assistant;
    out.write("<start_of_turn>", isAnswer ? "model" : "user", "\n",
              std::exchange(first, ""));
    if (isAnswer)
      out.count(strip(message.content), "<end_of_turn>");
    else
      out.write(strip(message.content), "<end_of_turn>");
    out.write("\n");
  }
}
void renderGemma2(ChatWriter &out, Messages messages) {
  renderGemma(out, messages, "");
}
void renderGemma3(ChatWriter &out, Messages messages) {
  std::optional<std::string_view> system = takeSystem(messages);
  renderGemma(out, messages, system ? std::string(*system) + "\n\n" : "");
}

/// All system messages stand at the beginning.
void renderDeepSeek(ChatWriter &out, Messages messages,
                    std::string_view between, bool dropsReasoning) {
  constexpr std::string_view close = "</think>";
  out.write(out.begin);
  std::string system;
  bool isFirst = true;
  for (const ChatMessage &message : messages)
    if (message.role == ChatRole::System)
      system += (std::exchange(isFirst, false) ? "" : std::string(between)) +
                message.content;
  out.write(system);
  for (const ChatMessage &message : messages) {
    std::string_view content = message.content;
    if (message.role == ChatRole::User)
      out.write("<｜User｜>", content);
    if (message.role != ChatRole::Assistant)
      continue;
    if (size_t at = content.rfind(close); dropsReasoning && at != content.npos)
      content.remove_prefix(at + close.size());
    out.write("<｜Assistant｜>");
    out.count(content, "<｜end▁of▁sentence｜>");
  }
}
void renderDeepSeekV3(ChatWriter &out, Messages messages) {
  renderDeepSeek(out, messages, "\n\n", false);
}
void renderDeepSeekR1(ChatWriter &out, Messages messages) {
  renderDeepSeek(out, messages, "\n\n", true);
}

void requireNoChannels(std::string_view text) {
  for (const char *mark :
       {"<|channel|>analysis<|message|>", "<|channel|>final<|message|>"})
    if (text.find(mark) != text.npos)
      throw InputError(fmt::format("expected messages without '{}', as the "
                                   "chat template demands",
                                   mark));
}

/// Harmony. The date is that of the models' publication: one of today would
/// give the same text other tokens tomorrow.
void renderGptOss(ChatWriter &out, Messages messages) {
  std::string_view system = takeSystem(messages).value_or("");
  out.write("<|start|>system<|message|>You are ChatGPT, a large language model "
            "trained by OpenAI.\nKnowledge cutoff: 2024-06\n",
            "Current date: 2025-08-05\n\nReasoning: medium\n\n",
            "# Valid channels: analysis, commentary, final. Channel must be "
            "included for every message.<|end|>");
  if (!system.empty())
    out.write("<|start|>developer<|message|># Instructions\n\n", system,
              "\n\n<|end|>");
  for (const ChatMessage &message : messages) {
    if (message.role == ChatRole::User)
      out.write("<|start|>user<|message|>", message.content, "<|end|>");
    if (message.role != ChatRole::Assistant)
      continue;
    requireNoChannels(message.content);
    requireNoChannels(message.thinking.value_or(""));
    bool isLast = &message == &messages.back();
    out.write("<|start|>assistant");
    if (isLast && message.thinking) {
      out.count("<|channel|>analysis<|message|>", *message.thinking, "<|end|>",
                "<|start|>assistant<|channel|>final<|message|>",
                message.content, "<|return|>");
      continue;
    }
    out.count("<|channel|>final<|message|>", message.content,
              isLast ? "<|return|>" : "<|end|>");
  }
}

} // namespace

struct ChatTemplate {
  const char *name;
  std::array<std::string_view, 3> marks;  // words of the program, all of them
  std::array<std::string_view, 8> absent; // words of programs that differ
  void (*render)(ChatWriter &, Messages);
  bool needsEnd = false;
};

/// The first row whose marks a program has is its template. ADD: a row here,
/// and a case in test/runtime/documents/ChatTemplateTest.cpp.
static constexpr ChatTemplate kTable[] = {
    {"chatml",
     {"'<|im_start|>' + message", "<|im_end|>"},
     {"think>", "You are ", "trim", "strip", "bos_token", "eos_token",
      "im_sep"},
     renderChatMl},
    {"qwen2",
     {"'<|im_start|>' + message", "You are a helpful assistant.<|im_end|>"},
     {"Qwen", "think>", "trim", "strip", "bos_token"},
     renderQwen2},
    {"qwen2.5",
     {"'<|im_start|>' + message",
      "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
     {"think>", "trim", "strip", "bos_token"},
     renderQwen25},
    {"qwen3",
     {"'<|im_start|>' + message", "last_query_index", "reasoning_content"},
     {"render_content", "preserve_thinking", "trim", "bos_token"},
     renderQwen3},
    {"llama2",
     {"[INST] ", "<<SYS>>", "content.strip()"},
     {},
     renderLlama2,
     true},
    {"llama3",
     {"'<|start_header_id|>' + message['role']", "| trim + '<|eot_id|>'",
      "bos_token + content"},
     {"Cutting Knowledge Date", "alternate", "recipient"},
     renderLlama3},
    {"llama3.1",
     {"<|start_header_id|>", "Cutting Knowledge Date: December 2023",
      "26 Jul 2024"},
     {},
     renderLlama31},
    {"mistral-v0.1",
     {"'[INST] ' + message['content'] + ' [/INST]'",
      "message['content'] + eos_token + ' '"},
     {"system"},
     renderMistral1,
     true},
    {"mistral-v0.2",
     {"'[INST] ' + message['content'] + ' [/INST]'",
      "message['content'] + eos_token"},
     {"system", "eos_token + ' '"},
     renderMistral2,
     true},
    {"mistral-v0.3",
     {"\"[INST] \" + message[\"content\"] + \"[/INST]\"",
      "\" \" + message[\"content\"]|trim + eos_token",
      "loop.last and system_message is defined"},
     {},
     renderMistral3,
     true},
    {"mistral-nemo",
     {"\"[INST]\" + message[\"content\"] + \"[/INST]\"",
      "message[\"content\"] + eos_token"},
     {},
     renderMistralNemo,
     true},
    {"gemma2",
     {"<start_of_turn>", "System role not supported"},
     {},
     renderGemma2},
    {"gemma3", {"<start_of_turn>", "first_user_prefix"}, {}, renderGemma3},
    {"deepseek-v3",
     {"<｜Assistant｜>", "<｜end▁of▁sentence｜>",
      "ns.system_prompt + '\\n\\n' + message['content']"},
     {"think>"},
     renderDeepSeekV3},
    {"deepseek-r1",
     {"<｜Assistant｜>", "content.split('</think>')[-1]",
      "ns.system_prompt + '\\n\\n' + message['content']"},
     {"is_last_user"},
     renderDeepSeekR1},
    {"gpt-oss",
     {"<|channel|>final<|message|>", "<|return|>"},
     {},
     renderGptOss},
};

const ChatTemplate *findChatTemplate(std::string_view name) {
  auto row = std::ranges::find(kTable, name, &ChatTemplate::name);
  return row == std::end(kTable) ? nullptr : row;
}

const ChatTemplate *recognizeChatTemplate(std::string_view program) {
  auto has = [&](std::string_view word) {
    return program.find(word) != program.npos;
  };
  for (const ChatTemplate &row : kTable)
    if (std::ranges::all_of(row.marks, has) &&
        std::ranges::none_of(row.absent, [&](std::string_view word) {
          return !word.empty() && has(word);
        }))
      return &row;
  return nullptr;
}

const char *nameOf(const ChatTemplate &family) { return family.name; }

std::string chatTemplateNames() {
  std::string names;
  for (const ChatTemplate &row : kTable)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

bool needsEnd(const ChatTemplate &family) { return family.needsEnd; }

Document render(const ChatForm &form,
                const std::vector<ChatMessage> &messages) {
  ChatWriter out(form);
  form.family->render(out, messages);
  return out.take();
}

} // namespace rota
