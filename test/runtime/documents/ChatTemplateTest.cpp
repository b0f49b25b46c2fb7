// SPDX-License-Identifier: Apache-2.0
//
// Conversations by each template, as jinja2 3.1 renders the published programs.
#include "runtime/documents/ChatTemplate.h"
#include "runtime/Error.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;
using Texts = std::vector<std::string>;

namespace {

struct Case {
  const char *name;
  bool hasSystem;
  std::string text;
  Texts counted;
};

const std::vector<Case> kCases = {
    {"chatml",
     true,
     "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n "
     "Hi\n<|im_end|>\n<|im_start|>assistant\n<think>\nA "
     "greeting.\n</"
     "think>\n\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>"
     "assistant\n Farewell <|im_end|>\n",
     {"<think>\nA greeting.\n</think>\n\nHello<|im_end|>",
      " Farewell <|im_end|>"}},
    {"qwen2",
     false,
     "<|im_start|>system\nYou are a helpful "
     "assistant.<|im_end|>\n<|im_start|>user\n "
     "Hi\n<|im_end|>\n<|im_start|>assistant\n<think>\nA "
     "greeting.\n</"
     "think>\n\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>"
     "assistant\n Farewell <|im_end|>\n",
     {"<think>\nA greeting.\n</think>\n\nHello<|im_end|>",
      " Farewell <|im_end|>"}},
    {"qwen2.5",
     false,
     "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a "
     "helpful assistant.<|im_end|>\n<|im_start|>user\n "
     "Hi\n<|im_end|>\n<|im_start|>assistant\n<think>\nA "
     "greeting.\n</"
     "think>\n\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>"
     "assistant\n Farewell <|im_end|>\n",
     {"<think>\nA greeting.\n</think>\n\nHello<|im_end|>",
      " Farewell <|im_end|>"}},
    {"qwen3",
     true,
     "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n "
     "Hi\n<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>"
     "user\nBye<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n "
     "Farewell <|im_end|>\n",
     {"Hello<|im_end|>", "<think>\n\n</think>\n\n Farewell <|im_end|>"}},
    {"llama2",
     true,
     "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi [/INST] <think>\nA "
     "greeting.\n</think>\n\nHello </s><s>[INST] Bye [/INST] Farewell </s>",
     {" <think>\nA greeting.\n</think>\n\nHello </s>", " Farewell </s>"}},
    {"llama3",
     true,
     "<s><|start_header_id|>system<|end_header_id|>\n\nBe "
     "brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><"
     "|start_header_id|>assistant<|end_header_id|>\n\n<think>\nA "
     "greeting.\n</"
     "think>\n\nHello<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<"
     "|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nFarewell<|eot_"
     "id|>",
     {"<think>\nA greeting.\n</think>\n\nHello<|eot_id|>",
      "Farewell<|eot_id|>"}},
    {"llama3.1",
     false,
     "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: "
     "December 2023\nToday Date: 26 Jul "
     "2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|"
     "><|start_header_id|>assistant<|end_header_id|>\n\n<think>\nA "
     "greeting.\n</"
     "think>\n\nHello<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<"
     "|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nFarewell<|eot_"
     "id|>",
     {"<think>\nA greeting.\n</think>\n\nHello<|eot_id|>",
      "Farewell<|eot_id|>"}},
    {"mistral-v0.1",
     false,
     "<s>[INST]  Hi\n [/INST]<think>\nA greeting.\n</think>\n\nHello</s> "
     "[INST] Bye [/INST] Farewell </s> ",
     {"<think>\nA greeting.\n</think>\n\nHello</s>", " Farewell </s>"}},
    {"mistral-v0.2",
     false,
     "<s>[INST]  Hi\n [/INST]<think>\nA greeting.\n</think>\n\nHello</s>[INST] "
     "Bye [/INST] Farewell </s>",
     {"<think>\nA greeting.\n</think>\n\nHello</s>", " Farewell </s>"}},
    {"mistral-v0.3",
     true,
     "<s>[INST]  Hi\n[/INST] <think>\nA greeting.\n</think>\n\nHello</s>[INST] "
     "Bye[/INST] Farewell</s>",
     {" <think>\nA greeting.\n</think>\n\nHello</s>", " Farewell</s>"}},
    {"mistral-nemo",
     true,
     "<s>[INST] Hi\n[/INST]<think>\nA "
     "greeting.\n</think>\n\nHello</s>[INST]Bye[/INST] Farewell </s>",
     {"<think>\nA greeting.\n</think>\n\nHello</s>", " Farewell </s>"}},
    {"gemma2",
     false,
     "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n<think>"
     "\nA "
     "greeting.\n</"
     "think>\n\nHello<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<"
     "start_of_turn>model\nFarewell<end_of_turn>\n",
     {"<think>\nA greeting.\n</think>\n\nHello<end_of_turn>",
      "Farewell<end_of_turn>"}},
    {"gemma3",
     true,
     "<s><start_of_turn>user\nBe "
     "brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n<think>\nA "
     "greeting.\n</"
     "think>\n\nHello<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<"
     "start_of_turn>model\nFarewell<end_of_turn>\n",
     {"<think>\nA greeting.\n</think>\n\nHello<end_of_turn>",
      "Farewell<end_of_turn>"}},
    {"deepseek-v3",
     true,
     "<s>Be brief.<｜User｜> Hi\n<｜Assistant｜><think>\nA "
     "greeting.\n</"
     "think>\n\nHello<｜end▁of▁sentence｜><｜User｜>Bye<｜Assistant｜> "
     "Farewell <｜end▁of▁sentence｜>",
     {"<think>\nA greeting.\n</think>\n\nHello<｜end▁of▁sentence｜>",
      " Farewell <｜end▁of▁sentence｜>"}},
    {"deepseek-r1",
     true,
     "<s>Be brief.<｜User｜> "
     "Hi\n<｜Assistant｜>\n\nHello<｜end▁of▁sentence｜><｜User｜>Bye<"
     "｜Assistant｜> Farewell <｜end▁of▁sentence｜>",
     {"\n\nHello<｜end▁of▁sentence｜>", " Farewell <｜end▁of▁sentence｜>"}},
    {"gpt-oss",
     true,
     "<|start|>system<|message|>You are ChatGPT, a large language model "
     "trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: "
     "2025-08-05\n\nReasoning: medium\n\n# Valid channels: analysis, "
     "commentary, final. Channel must be included for every "
     "message.<|end|><|start|>developer<|message|># Instructions\n\nBe "
     "brief.\n\n<|end|><|start|>user<|message|> "
     "Hi\n<|end|><|start|>assistant<|channel|>final<|message|><think>\nA "
     "greeting.\n</"
     "think>\n\nHello<|end|><|start|>user<|message|>Bye<|end|><|start|>"
     "assistant<|channel|>final<|message|> Farewell <|return|>",
     {"<|channel|>final<|message|><think>\nA "
      "greeting.\n</think>\n\nHello<|end|>",
      "<|channel|>final<|message|> Farewell <|return|>"}},
};

std::vector<ChatMessage> conversation(bool hasSystem) {
  std::vector<ChatMessage> messages{
      {ChatRole::User, " Hi\n"},
      {ChatRole::Assistant, "<think>\nA greeting.\n</think>\n\nHello"},
      {ChatRole::User, "Bye"},
      {ChatRole::Assistant, " Farewell "}};
  if (hasSystem)
    messages.insert(messages.begin(), {ChatRole::System, "Be brief."});
  return messages;
}

TEST(ChatTemplate, WritesWhatThePublishedProgramWrites) {
  std::string names;
  for (const Case &each : kCases) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
    const ChatTemplate *family = findChatTemplate(each.name);
    ASSERT_NE(family, nullptr) << each.name;
    Document document =
        render({family, "<s>", "</s>"}, conversation(each.hasSystem));
    EXPECT_EQ(document.text, each.text) << each.name;
    EXPECT_TRUE(document.isRendered);
    Texts counted;
    for (ByteRange range : *document.counted)
      counted.push_back(
          document.text.substr(range.begin, range.end - range.begin));
    EXPECT_EQ(counted, each.counted) << each.name;
  }
  EXPECT_EQ(names, chatTemplateNames());
}

TEST(ChatTemplate, StripsWhatPythonStrips) {
  auto gemma = [&](const char *content) {
    return render({findChatTemplate("gemma2"), "", ""},
                  {{ChatRole::User, content}})
        .text;
  };
  // U+00A0, U+2003, U+3000, U+0085; not U+200B.
  EXPECT_EQ(gemma("\xC2\xA0\xE2\x80\x83 a\xE3\x80\x80\xC2\x85\t"),
            "<start_of_turn>user\na<end_of_turn>\n");
  EXPECT_EQ(gemma("\xE2\x80\x8B"
                  "a"),
            "<start_of_turn>user\n\xE2\x80\x8B"
            "a<end_of_turn>\n");
  EXPECT_EQ(gemma("\xC2\xA0"), "<start_of_turn>user\n<end_of_turn>\n");
}

TEST(ChatTemplate, IsKnownByWordsOfItsProgram) {
  auto nameOfProgram = [](const char *program) {
    const ChatTemplate *family = recognizeChatTemplate(program);
    return family ? nameOf(*family) : "none";
  };
  EXPECT_STREQ(nameOfProgram("{% for message in messages %}"
                             "{{'<|im_start|>' + message['role'] + '\n' + "
                             "message['content'] + '<|im_end|>' + '\n'}}"
                             "{% endfor %}"),
               "chatml");
  // A program with rules of its own is no ChatML.
  EXPECT_STREQ(nameOfProgram("{% for message in messages %}"
                             "{{'<|im_start|>' + message['role'] + '\n' + "
                             "message['content']|trim + '<|im_end|>' + '\n'}}"
                             "{% endfor %}"),
               "none");
  EXPECT_STREQ(nameOfProgram("'[INST] ' + message['content'] + ' [/INST]' "
                             "message['content'] + eos_token"),
               "mistral-v0.2");
  EXPECT_STREQ(nameOfProgram("'[INST] ' + message['content'] + ' [/INST]' "
                             "message['content'] + eos_token + ' '"),
               "mistral-v0.1");
  EXPECT_STREQ(nameOfProgram(""), "none");
  EXPECT_EQ(findChatTemplate("no"), nullptr);
}

TEST(ChatTemplate, RefusesRolesThatDoNotTakeTurns) {
  for (const char *name : {"llama2", "mistral-v0.1", "mistral-v0.2",
                           "mistral-v0.3", "mistral-nemo", "gemma2", "gemma3"})
    EXPECT_EQ(messageOf<InputError>([&] {
                render({findChatTemplate(name), "", "</s>"},
                       {{ChatRole::User, "a"}, {ChatRole::User, "b"}});
              }),
              "expected user and assistant to take turns after at most one "
              "system message, as the chat template demands, got user in the "
              "place of assistant");
}

} // namespace
