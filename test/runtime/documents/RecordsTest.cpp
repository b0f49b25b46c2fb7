// SPDX-License-Identifier: Apache-2.0
//
// Lines of .jsonl as documents, and what is wrong with lines.
#include "runtime/documents/Records.h"
#include "runtime/Error.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

RecordOptions withChat() {
  RecordOptions options;
  options.chat = ChatForm{findChatTemplate("chatml"), "", ""};
  return options;
}

TEST(Records, ReadsTextsPairsAndConversations) {
  Document text = readRecord(R"({"id": 1, "text": "a\nb\u00e9"})", {});
  EXPECT_EQ(text.text, "a\nb\xC3\xA9");
  EXPECT_FALSE(text.counted);
  RecordOptions body;
  body.field = "body";
  EXPECT_EQ(readRecord(R"({"body": "x", "text": "y"})", body).text, "x");

  Document pair = readRecord(R"({"prompt": "2+2=", "completion": "4"})", {});
  EXPECT_EQ(pair.text, "2+2=4");
  EXPECT_EQ(*pair.counted, (std::vector<ByteRange>{{4, 5}}));
  EXPECT_FALSE(pair.isRendered);

  Document chat = readRecord(
      R"({"messages": [{"role": "user", "content": "u"},
          {"role": "assistant", "content": "a"}]})",
      withChat());
  EXPECT_EQ(chat.text,
            "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\na<|im_end|>"
            "\n");
  EXPECT_TRUE(chat.isRendered);
  Document parts = readRecord(
      R"({"tools": [], "messages": [{"role": "user", "content": [
            {"type": "text", "text": "a\n"}, {"text": "b", "type": "text"}]},
          {"role": "assistant", "content": [], "tool_calls": null}]})",
      withChat());
  EXPECT_EQ(parts.text,
            "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n"
            "<|im_end|>\n");
}

TEST(Records, SaysWhatIsWrong) {
  RecordOptions without;
  without.chatMissing = "no template";
  auto wrong = [&](const char *line, const RecordOptions &options) {
    return messageOf<InputError>([&] { readRecord(line, options); });
  };
  EXPECT_EQ(wrong("[1]", {}), "expected an object, got a value of type array");
  EXPECT_EQ(wrong(R"({"text": null})", {}), "'text': expected text, got null");
  EXPECT_EQ(wrong(R"({"txt": ""})", {}),
            "expected a field 'text', 'messages', or 'prompt' and "
            "'completion', got none of them; --field names another field of "
            "texts");
  EXPECT_TRUE(wrong(R"({"text": "a)", {})
                  .starts_with("expected JSON: parse "
                               "error at line 1"));
  EXPECT_TRUE(wrong("{\"text\": \"\xFF\"}", {}).starts_with("expected JSON: "));
  EXPECT_EQ(wrong(std::string(300, '[').c_str(), {}),
            "expected at most 256 levels of brackets, got more at byte 256");

  auto chat = [&](const char *messages) {
    return wrong((std::string(R"({"messages": )") + messages + "}").c_str(),
                 withChat());
  };
  EXPECT_EQ(wrong(R"({"messages": []})", without), "no template");
  EXPECT_EQ(chat("[]"),
            "'messages': expected an array of at least one message, "
            "got none");
  EXPECT_EQ(chat(R"([{"role": "user", "content": "a"}, {"content": "b"}])"),
            "message 2 of 2: expected a field 'role', got none");
  EXPECT_EQ(chat(R"([{"role": "tool", "content": "a"}])"),
            "message 1 of 1: 'role': expected system, user or assistant, got "
            "'tool'");
  EXPECT_EQ(chat(R"([{"role": "user", "content": [1]}])"),
            "message 1 of 1: 'content': part 1 of 1: expected an object, got a "
            "value of type number");
  EXPECT_EQ(chat(R"([{"role": "user", "content": 1}])"),
            "message 1 of 1: 'content': expected text, got a value of type "
            "number");
  EXPECT_EQ(chat(R"([{"role": "user", "content": [
              {"type": "text", "text": "a"}, {"type": "image_url"}]}])"),
            "message 1 of 1: 'content': part 2 of 2: 'type': expected text, "
            "got 'image_url'");
  EXPECT_EQ(chat(R"([{"role": "assistant", "content": "",
                      "tool_calls": [{}]}])"),
            "message 1 of 1: expected a message without 'tool_calls', which "
            "chat templates here do not write");
  EXPECT_EQ(chat(R"([{"role": "assistant", "content": null,
                      "function_call": {"name": "f"}}])"),
            "message 1 of 1: expected a message without 'function_call', which "
            "chat templates here do not write");
  EXPECT_EQ(wrong(R"({"messages": [{"role": "user", "content": "a"}],
                      "tools": [{"type": "function"}]})",
                  withChat()),
            "expected a conversation without 'tools', which chat templates "
            "here do not write");
}

} // namespace
