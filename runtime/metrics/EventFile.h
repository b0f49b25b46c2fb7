// SPDX-License-Identifier: Apache-2.0
//
// Event files of TensorBoard. A file is a sequence of records in the framing of
// TFRecord (tensorflow/core/lib/io/record_writer.h):
//
//   uint64  length              little-endian
//   uint32  masked CRC of the length
//   byte    data[length]
//   uint32  masked CRC of the data
//
// The CRC is CRC-32C (RFC 3720, appendix B.4: polynomial 0x1EDC6F41,
// reflected), masked by mask(c) = (c >> 15 | c << 17) + 0xa282ead8. The data
// is a message `Event` in Protocol Buffers' encoding (tensorflow/core/util/
// event.proto, tensorflow/core/framework/summary.proto):
//
//   Event    1: double wall_time   2: int64 step   3: string file_version
//            5: Summary summary
//   Summary  1: repeated Value     Value  1: string tag   2: float simple_value
//
// The first event of a file has the version "brain.Event:2".
#ifndef ROTA_RUNTIME_METRICS_EVENTFILE_H
#define ROTA_RUNTIME_METRICS_EVENTFILE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// A number of a step under its name in TensorBoard: "loss/train".
struct EventScalar {
  std::string tag;
  float value = 0.0F;
};

/// CRC-32C of the bytes, and the same as a record holds it.
uint32_t crc32c(std::string_view bytes);
uint32_t maskedCrc32c(std::string_view bytes);

/// The first record of a file. `wallTime`: seconds since 1970.
std::string versionRecord(double wallTime);
/// The record of a step's numbers.
std::string scalarsRecord(double wallTime, int64_t step,
                          const std::vector<EventScalar> &scalars);

/// "events.out.tfevents.1700000000.host.rota": TensorBoard shows files with
/// "tfevents" in their name.
std::string eventFileName(double wallTime, const std::string &host);

} // namespace rota

#endif // ROTA_RUNTIME_METRICS_EVENTFILE_H
