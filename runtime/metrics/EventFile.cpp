// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/EventFile.h"

#include <array>
#include <bit>
#include <fmt/format.h>

namespace rota {

static constexpr std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0); // reflected
    table[i] = value;
  }
  return table;
}

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = makeTable();
  uint32_t sum = 0xffffffffu;
  for (char byte : bytes)
    sum = (sum >> 8) ^ kTable[(sum ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~sum;
}

uint32_t maskedCrc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

namespace {

/// A message in Protocol Buffers' encoding
/// (protobuf.dev/programming-guides/encoding).
class Message {
public:
  void addVarint(int field, uint64_t value) {
    key(field, 0);
    varint(value);
  }
  void addDouble(int field, double value) {
    key(field, 1);
    fixed(std::bit_cast<uint64_t>(value), 8);
  }
  void addBytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes += value;
  }
  void addFloat(int field, float value) {
    key(field, 5);
    fixed(std::bit_cast<uint32_t>(value), 4);
  }
  /// Little-endian.
  void fixed(uint64_t value, int count) {
    for (int i = 0; i < count; ++i)
      bytes += static_cast<char>(value >> (8 * i));
  }

  std::string bytes;

private:
  void key(int field, unsigned wireType) {
    varint(static_cast<uint64_t>(field) << 3 | wireType);
  }
  /// Seven bits a byte, the low ones first.
  void varint(uint64_t value) {
    for (; value > 127; value >>= 7)
      bytes += static_cast<char>(value | 128);
    bytes += static_cast<char>(value);
  }
};

std::string framed(const std::string &data) {
  Message record;
  record.fixed(data.size(), 8);
  record.fixed(maskedCrc32c(record.bytes), 4);
  record.bytes += data;
  record.fixed(maskedCrc32c(data), 4);
  return record.bytes;
}

} // namespace

std::string versionRecord(double wallTime) {
  Message event;
  event.addDouble(1, wallTime);
  event.addBytes(3, "brain.Event:2");
  return framed(event.bytes);
}

std::string scalarsRecord(double wallTime, int64_t step,
                          const std::vector<EventScalar> &scalars) {
  Message summary;
  for (const EventScalar &scalar : scalars) {
    Message value;
    value.addBytes(1, scalar.tag);
    value.addFloat(2, scalar.value);
    summary.addBytes(1, value.bytes);
  }
  Message event;
  event.addDouble(1, wallTime);
  event.addVarint(2, static_cast<uint64_t>(step));
  event.addBytes(5, summary.bytes);
  return framed(event.bytes);
}

std::string eventFileName(double wallTime, const std::string &host) {
  return fmt::format("events.out.tfevents.{}.{}.rota",
                     static_cast<int64_t>(wallTime), host);
}

} // namespace rota
