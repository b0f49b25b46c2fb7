// SPDX-License-Identifier: Apache-2.0
//
// Compressed texts for tests.
#ifndef ROTA_TEST_RUNTIME_DOCUMENTS_COMPRESS_H
#define ROTA_TEST_RUNTIME_DOCUMENTS_COMPRESS_H

#include "test/runtime/TemporaryFolder.h"

#include <zlib.h>
#include <zstd.h>

namespace rota::test {

inline std::string gzip(const std::string &text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

inline std::string zstd(const std::string &text) {
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  bytes.resize(
      ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 3));
  return bytes;
}

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_DOCUMENTS_COMPRESS_H
