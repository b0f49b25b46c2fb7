// SPDX-License-Identifier: Apache-2.0
#include "runtime/documents/TextInput.h"
#include "runtime/Error.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>
#include <zlib.h>
#include <zstd.h>

namespace rota {

static constexpr size_t kFilePiece = 256 << 10; // bytes of a read of a file

size_t TextInput::read(char *out, size_t count) {
  size_t got = readText(out, count);
  given += static_cast<int64_t>(got);
  return got;
}

void TextInput::skip(int64_t count) {
  std::vector<char> dropped(kFilePiece);
  while (count > 0) {
    size_t got =
        read(dropped.data(),
             static_cast<size_t>(std::min(count, std::ssize(dropped))));
    if (got == 0)
      throw RunError(fmt::format("'{}': expected {} bytes of text more, got "
                                 "its end after {}",
                                 path(), count, given));
    count -= static_cast<int64_t>(got);
  }
}

size_t TextInput::readFile(char *out, size_t count) {
  auto bytes = std::min(static_cast<int64_t>(count), file.bytes() - taken);
  file.read(taken, bytes, out);
  taken += bytes;
  return static_cast<size_t>(bytes);
}

void TextInput::fail(const char *form, const std::string &reason) const {
  throw InputError(fmt::format("'{}': expected {} data, got {} after {} bytes "
                               "of text",
                               path(), form, reason, given));
}

namespace {

class PlainInput final : public TextInput {
public:
  explicit PlainInput(const std::string &path) : TextInput(path) {}

  void skip(int64_t count) override {
    if (count > file.bytes() - taken)
      return TextInput::skip(count);
    taken += count;
    given += count;
  }

private:
  size_t readText(char *out, size_t count) override {
    return readFile(out, count);
  }
};

/// A file may have several members, one after the other.
class GzipInput final : public TextInput {
public:
  explicit GzipInput(const std::string &path)
      : TextInput(path), input(kFilePiece) {
    constexpr int kGzipAlone = 15 + 16; // window of 32 KiB, header of gzip
    if (inflateInit2(&stream, kGzipAlone) != Z_OK)
      throw std::bad_alloc();
  }
  ~GzipInput() override { inflateEnd(&stream); }

private:
  size_t readText(char *out, size_t count) override {
    stream.next_out = reinterpret_cast<Bytef *>(out);
    stream.avail_out = static_cast<uInt>(std::min(count, kFilePiece));
    const uInt asked = stream.avail_out;
    while (stream.avail_out == asked) {
      // Without input there may still be output that had no room before.
      int code = inflate(&stream, Z_NO_FLUSH);
      isInside = code != Z_STREAM_END && stream.total_in > 0;
      if (code == Z_STREAM_END)
        inflateReset(&stream);
      else if (code != Z_OK && code != Z_BUF_ERROR)
        fail("gzip", stream.msg ? stream.msg : "damaged bytes");
      if (stream.avail_out == asked && stream.avail_in == 0 && !fill())
        return 0;
    }
    return asked - stream.avail_out;
  }

  bool fill() {
    size_t got = readFile(input.data(), input.size());
    if (got == 0 && (isInside || given == 0))
      fail("gzip", "the end of the file");
    stream.next_in = reinterpret_cast<Bytef *>(input.data());
    stream.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  std::vector<char> input;
  z_stream stream = {};
  bool isInside = false; // of a member
};

/// A file may have several frames, one after the other.
class ZstdInput final : public TextInput {
public:
  explicit ZstdInput(const std::string &path)
      : TextInput(path), bytes(kFilePiece), context(ZSTD_createDCtx()) {
    if (!context)
      throw std::bad_alloc();
  }
  ~ZstdInput() override { ZSTD_freeDCtx(context); }

private:
  size_t readText(char *out, size_t count) override {
    ZSTD_outBuffer output{out, count, 0};
    while (output.pos == 0) {
      if (!hasMore && input.pos == input.size && !fill())
        return 0;
      // Windows of more than 128 MiB are refused by the library.
      size_t code = ZSTD_decompressStream(context, &output, &input);
      if (ZSTD_isError(code))
        fail("zstd", ZSTD_getErrorName(code));
      isInside = code != 0;
      hasMore = isInside && output.pos == output.size;
    }
    return output.pos;
  }

  bool fill() {
    size_t got = readFile(bytes.data(), bytes.size());
    if (got == 0 && (isInside || given == 0))
      fail("zstd", "the end of the file");
    input = {bytes.data(), got, 0};
    return got > 0;
  }

  std::vector<char> bytes;
  ZSTD_DCtx *context;
  ZSTD_inBuffer input = {nullptr, 0, 0};
  bool isInside = false; // of a frame
  bool hasMore = false;  // output that had no room
};

} // namespace

std::unique_ptr<TextInput> openText(const std::string &path) {
  switch (compressionOf(path)) {
  case Compression::Gzip:
    return std::make_unique<GzipInput>(path);
  case Compression::Zstd:
    return std::make_unique<ZstdInput>(path);
  case Compression::None:
    break;
  }
  return std::make_unique<PlainInput>(path);
}

} // namespace rota
