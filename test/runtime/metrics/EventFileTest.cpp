// SPDX-License-Identifier: Apache-2.0
//
// Event files, read by a decoder of the test's own.
#include "runtime/metrics/EventFile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

using namespace rota;

namespace {

/// The lengths of 8 and the checksums of 4 bytes, little-endian.
uint64_t readFixed(std::string_view &bytes, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= uint64_t(static_cast<uint8_t>(bytes.at(i))) << (8 * i);
  bytes.remove_prefix(count);
  return value;
}

/// CRC-32C bit by bit, and the mask of records.
uint32_t slowMaskedCrc(std::string_view bytes) {
  uint32_t sum = ~0u;
  for (char byte : bytes) {
    sum ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ ((sum & 1) * 0x82f63b78u);
  }
  sum = ~sum;
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

/// The data of each record; checks lengths and checksums.
std::vector<std::string> readRecords(std::string_view bytes) {
  std::vector<std::string> records;
  while (!bytes.empty()) {
    std::string_view header = bytes.substr(0, 8);
    uint64_t length = readFixed(bytes, 8);
    EXPECT_EQ(readFixed(bytes, 4), slowMaskedCrc(header));
    std::string_view data = bytes.substr(0, length);
    EXPECT_EQ(data.size(), length);
    bytes.remove_prefix(length);
    EXPECT_EQ(readFixed(bytes, 4), slowMaskedCrc(data));
    records.emplace_back(data);
  }
  return records;
}

uint64_t readVarint(std::string_view &bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = static_cast<uint8_t>(bytes.at(0));
    bytes.remove_prefix(1);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128)
      return value;
  }
}

struct Field {
  int number;
  uint64_t value;    // the bits of a number
  std::string bytes; // a text or message
};

std::vector<Field> readMessage(std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    uint64_t key = readVarint(bytes);
    Field &field =
        fields.emplace_back(Field{static_cast<int>(key >> 3), 0, ""});
    if ((key & 7) == 0)
      field.value = readVarint(bytes);
    else if ((key & 7) == 1)
      field.value = readFixed(bytes, 8);
    else if ((key & 7) == 5)
      field.value = readFixed(bytes, 4);
    else {
      EXPECT_EQ(key & 7, 2u);
      uint64_t length = readVarint(bytes);
      field.bytes = bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return fields;
}

double asDouble(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float asFloat(uint64_t bits) {
  auto low = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

} // namespace

// The examples of RFC 3720, B.4, and the check value of the CRC catalogue.
TEST(EventFile, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(maskedCrc32c("123456789"), slowMaskedCrc("123456789"));
}

TEST(EventFile, BeginsWithItsVersion) {
  std::vector<std::string> records = readRecords(versionRecord(12.5));
  ASSERT_EQ(records.size(), 1u);
  std::vector<Field> event = readMessage(records[0]);
  ASSERT_EQ(event.size(), 2u);
  EXPECT_EQ(event[0].number, 1);
  EXPECT_EQ(asDouble(event[0].value), 12.5);
  EXPECT_EQ(event[1].number, 3);
  EXPECT_EQ(event[1].bytes, "brain.Event:2");
}

TEST(EventFile, HasTheNumbersOfAStepUnderTheirTags) {
  // A step of more than 7 bits, and a message of more than 127 bytes.
  std::string tag(200, 't');
  std::vector<std::string> records = readRecords(
      versionRecord(1) +
      scalarsRecord(2, 70000, {{"loss/train", 1.5F}, {tag, -0.25F}}));
  ASSERT_EQ(records.size(), 2u);
  std::vector<Field> event = readMessage(records[1]);
  ASSERT_EQ(event.size(), 3u);
  EXPECT_EQ(asDouble(event[0].value), 2.0);
  EXPECT_EQ(event[1].number, 2);
  EXPECT_EQ(event[1].value, 70000u);
  EXPECT_EQ(event[2].number, 5);
  std::map<std::string, float> values;
  for (const Field &value : readMessage(event[2].bytes)) {
    EXPECT_EQ(value.number, 1);
    std::vector<Field> parts = readMessage(value.bytes);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].number, 1);
    EXPECT_EQ(parts[1].number, 2);
    values[parts[0].bytes] = asFloat(parts[1].value);
  }
  EXPECT_EQ(values, (std::map<std::string, float>{{"loss/train", 1.5F},
                                                  {tag, -0.25F}}));
}

TEST(EventFile, IsNamedAsTensorBoardExpects) {
  EXPECT_EQ(eventFileName(1700000000.9, "node1"),
            "events.out.tfevents.1700000000.node1.rota");
}
