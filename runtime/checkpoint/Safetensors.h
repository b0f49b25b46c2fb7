// SPDX-License-Identifier: Apache-2.0
//
// The safetensors format: 8 bytes of header length (little endian), a JSON
// header {name: {dtype, shape, data_offsets: [begin, end]}}, then the data that
// the offsets count from. https://github.com/huggingface/safetensors
#ifndef ROTA_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define ROTA_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include "runtime/files/WriteFile.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rota {

/// A tensor in memory: part of a mapped file, or data to be written.
struct TensorView {
  std::string type; // "F32", "F64", "F16", "BF16", "I32", "I64", ...
  std::vector<int64_t> shape;
  const char *data = nullptr; // no alignment is promised
  int64_t bytes = 0;

  int64_t elements() const;
};

/// Bytes of an element of that type; 0 for a name that is none.
int64_t typeBytes(const std::string &type);

/// "[2, 3]".
std::string shapeText(const std::vector<int64_t> &shape);

/// Elements [begin, end) as f32. `type` must be F32, F64, F16 or BF16.
void readFloats(const TensorView &tensor, int64_t begin, int64_t end,
                float *out);
/// True for the types that readFloats takes.
bool isFloat(const TensorView &tensor);

/// A mapped file. The constructor checks the whole header: lengths, types,
/// shapes against bytes, overlaps and gaps.
class SafetensorsFile {
public:
  /// Throws InputError that names the file, the tensor and the numbers.
  explicit SafetensorsFile(const std::string &path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile &) = delete;
  SafetensorsFile &operator=(const SafetensorsFile &) = delete;

  const std::map<std::string, TensorView> &tensors() const { return views; }
  const std::string &path() const { return filePath; }

private:
  [[noreturn]] void fail(const std::string &message) const;
  void map();
  void readHeader();
  void checkCover(int64_t dataBytes) const;

  std::string filePath;
  char *base = nullptr;
  int64_t fileBytes = 0;
  const char *dataStart = nullptr;
  std::map<std::string, TensorView> views;
};

/// The type and shape of a tensor, as in the header.
struct TensorForm {
  std::string type;
  std::vector<int64_t> shape;
};

/// Writes a file tensor by tensor, so that only one has to be in memory.
/// The file is complete once every tensor is written.
class SafetensorsWriter {
public:
  /// Throws RunError.
  SafetensorsWriter(const std::string &path,
                    const std::map<std::string, TensorForm> &tensors);
  /// Writes the bytes of one tensor; tensors come in any order.
  void write(const std::string &name, const void *data);
  /// Bytes from the file's start to those of the tensor, and of the whole file.
  int64_t offsetOf(const std::string &name) const {
    return places.at(name).begin;
  }
  int64_t bytes() const { return fileBytes; }
  /// Gives the file its name; to be called after the last tensor.
  void commit();

private:
  struct Place {
    int64_t begin, bytes; // in the file
  };

  PendingFile file;
  std::map<std::string, Place> places;
  int64_t fileBytes = 0;
};

/// Writes all tensors; the file appears complete or not at all.
void writeSafetensors(const std::string &path,
                      const std::map<std::string, TensorView> &tensors);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_SAFETENSORS_H
