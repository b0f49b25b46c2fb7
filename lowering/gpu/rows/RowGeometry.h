// SPDX-License-Identifier: Apache-2.0
//
// The division of a kernel's rows among the threads of a GPU.
#ifndef ROTA_LOWERING_GPU_ROWS_ROWGEOMETRY_H
#define ROTA_LOWERING_GPU_ROWS_ROWGEOMETRY_H

#include "lowering/kernels/rows/RowBody.h"

namespace rota::lowering {

/// Bits of the narrowest element of a row's operands and results.
int64_t narrowestElement(const RowBody &body);

/// A choice that depends on the kernel and the number of rows alone, never on
/// the GPU, and so do the bits of sums.
struct RowGeometry {
  enum class Form {
    Chunks,    // a thread does one chunk of one row, nothing is combined
    Registers, // the threads of a row keep its chunks in registers
    Loop,      // a block does a row, and reads it again for each pass
  };

  /// Where a block keeps the sums of columns of its slots.
  enum class Sums {
    Registers,
    Shared, // shared memory, in which each thread has places of its own
    Memory, // the rows of partial sums themselves
  };

  RowGeometry(const RowBody &body, int64_t rows);

  Form form;
  Sums sums = Sums::Registers;
  int64_t width;    // elements of a chunk; 0: one value per row
  int64_t chunks;   // whole chunks per row
  int64_t tail = 0; // elements after them, in the form of chunks
  /// Blocks that share a row, each of which does some of its columns.
  int64_t parts = 1;
  int64_t threads = 1;      // threads of a block per row
  int64_t perThread = 1;    // chunks of a thread, in registers
  int64_t rowsPerBlock = 1; // at a time
  /// Rows that are done at a time: all of them or, where rows are summed, one
  /// for each row of partial sums. Slot s does rows s, s + slots, ...
  int64_t slots;
  /// Rows that a thread has on their way while it combines one, in registers.
  int64_t ahead = 1;
  int64_t blockThreads, blocks;

  /// Threads that do a row in the form of chunks: for each chunk and, after
  /// them, for each element.
  int64_t pieces() const { return chunks + tail; }
  /// Threads that do a row in the other forms, those of all its parts.
  int64_t rowThreads() const { return threads * parts; }

  /// Whether a value of each row may be overwritten while other threads of the
  /// row still have to read it.
  bool overwritesScalars;

private:
  /// Sets `form` and `sums` by the bytes that a thread keeps.
  void placeValues(const RowBody &body);
  /// The rows that threads need on their way where each does `trips` rows.
  int64_t rowsAhead(const RowBody &body, int64_t trips) const;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ROWS_ROWGEOMETRY_H
