// SPDX-License-Identifier: Apache-2.0
//
// Kernels that the runtime launches for transfers, beside those of a model:
// sums, rounding, copies. runtime/device/cuda/ServiceKernels.h says what they
// compute. The compiler holds this text and adds its contents to the module of a
// trainer's kernels.
//
// Functions that are not kernels are inlined. Where an argument is a constant
// of every call (the bytes of an element, say), LLVM leaves one of the branches.

// Loops over terms need their registers elsewhere.
#no_unroll = #llvm.loop_annotation<unroll = <disable = true>>

gpu.module @services {

//===----------------------------------------------------------------------===//
// Threads and chunks
//===----------------------------------------------------------------------===//

// The number of this thread in the grid.
llvm.func internal @rota_service_thread() -> i64 attributes {always_inline} {
  %threads = arith.constant 256 : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %wideBlock = arith.extui %block : i32 to i64
  %wideThreads = arith.extui %threads : i32 to i64
  %wideThread = arith.extui %thread : i32 to i64
  %first = arith.muli %wideBlock, %wideThreads : i64
  %number = arith.addi %first, %wideThread : i64
  llvm.return %number : i64
}

// The threads of the grid.
llvm.func internal @rota_service_threads() -> i64 attributes {always_inline} {
  %threads = arith.constant 256 : i64
  %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
  %wideBlocks = arith.extui %blocks : i32 to i64
  %all = arith.muli %wideBlocks, %threads : i64
  llvm.return %all : i64
}

// Whether `count` elements at `data`, in rows, are whole chunks of `width`
// elements (a power of two) and 16 bytes, but for the rest of a single row.
llvm.func internal @rota_service_has_chunks(%data: !llvm.ptr<1>, %count: i64, %length: i64, %stride: i64, %width: i64) -> i1 attributes {always_inline} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c15 = arith.constant 15 : i64
  %address = llvm.ptrtoint %data : !llvm.ptr<1> to i64
  %beyond = arith.andi %address, %c15 : i64
  %isAligned = arith.cmpi eq, %beyond, %c0 : i64
  %isOneRow = arith.cmpi sle, %count, %length : i64
  %low = arith.subi %width, %c1 : i64
  %either = arith.ori %length, %stride : i64
  %rest = arith.andi %either, %low : i64
  %isMultiple = arith.cmpi eq, %rest, %c0 : i64
  %isWhole = arith.ori %isOneRow, %isMultiple : i1
  %result = arith.andi %isAligned, %isWhole : i1
  llvm.return %result : i1
}

// The row of element `i` of `count`. One row needs no division.
llvm.func internal @rota_service_row(%i: i64, %count: i64, %length: i64) -> i64 attributes {always_inline} {
  %c0 = arith.constant 0 : i64
  %isOneRow = arith.cmpi sle, %count, %length : i64
  %row = scf.if %isOneRow -> (i64) {
    scf.yield %c0 : i64
  } else {
    %quotient = arith.divui %i, %length : i64
    scf.yield %quotient : i64
  }
  llvm.return %row : i64
}

// The byte of element `i`, which is in row `row`.
llvm.func internal @rota_service_byte(%i: i64, %row: i64, %length: i64, %stride: i64, %elementBytes: i64) -> i64 attributes {always_inline} {
  %gap = arith.subi %stride, %length : i64
  %gaps = arith.muli %row, %gap : i64
  %element = arith.addi %i, %gaps : i64
  %byte = arith.muli %element, %elementBytes : i64
  llvm.return %byte : i64
}

// 16, 4 or 2 bytes at byte `byte`: the low bits of the words, zeros after.
llvm.func internal @rota_service_load(%data: !llvm.ptr<1>, %byte: i64, %bytes: i64) -> vector<4xi32> attributes {always_inline} {
  %c4 = arith.constant 4 : i64
  %c16 = arith.constant 16 : i64
  %zeros = arith.constant dense<0> : vector<4xi32>
  %at = llvm.getelementptr %data[%byte] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %isVector = arith.cmpi eq, %bytes, %c16 : i64
  %words = scf.if %isVector -> (vector<4xi32>) {
    %loaded = llvm.load %at {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    scf.yield %loaded : vector<4xi32>
  } else {
    %isWord = arith.cmpi eq, %bytes, %c4 : i64
    %word = scf.if %isWord -> (i32) {
      %loaded = llvm.load %at : !llvm.ptr<1> -> i32
      scf.yield %loaded : i32
    } else {
      %loaded = llvm.load %at : !llvm.ptr<1> -> i16
      %wide = arith.extui %loaded : i16 to i32
      scf.yield %wide : i32
    }
    %first = vector.insert %word, %zeros[0] : i32 into vector<4xi32>
    scf.yield %first : vector<4xi32>
  }
  llvm.return %words : vector<4xi32>
}

// Stores what @rota_service_load has loaded.
llvm.func internal @rota_service_store(%words: vector<4xi32>, %data: !llvm.ptr<1>, %byte: i64, %bytes: i64) attributes {always_inline} {
  %c4 = arith.constant 4 : i64
  %c16 = arith.constant 16 : i64
  %at = llvm.getelementptr %data[%byte] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %isVector = arith.cmpi eq, %bytes, %c16 : i64
  scf.if %isVector {
    llvm.store %words, %at {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  } else {
    %word = vector.extract %words[0] : i32 from vector<4xi32>
    %isWord = arith.cmpi eq, %bytes, %c4 : i64
    scf.if %isWord {
      llvm.store %word, %at : i32, !llvm.ptr<1>
    } else {
      %half = arith.trunci %word : i32 to i16
      llvm.store %half, %at : i16, !llvm.ptr<1>
    }
  }
  llvm.return
}

//===----------------------------------------------------------------------===//
// Sums of gradients, rounding of parameters
//===----------------------------------------------------------------------===//

gpu.func @rota_add_f32(%sum: !llvm.ptr<1>, %terms: !llvm.ptr<1>, %count: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i64
  %c4 = arith.constant 4 : i64
  %thread = llvm.call @rota_service_thread() : () -> i64
  %threads = llvm.call @rota_service_threads() : () -> i64

  %sumHas = llvm.call @rota_service_has_chunks(%sum, %count, %count, %count, %c4) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %termsHave = llvm.call @rota_service_has_chunks(%terms, %count, %count, %count, %c4) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %bothHave = arith.andi %sumHas, %termsHave : i1
  %whole = arith.divui %count, %c4 : i64
  %chunks = arith.select %bothHave, %whole, %c0 : i64
  scf.for %c = %thread to %chunks step %threads : i64 {
    %i = arith.muli %c, %c4 : i64
    %p = llvm.getelementptr %sum[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %q = llvm.getelementptr %terms[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %x = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %y = llvm.load %q {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %z = arith.addf %x, %y : vector<4xf32>
    llvm.store %z, %p {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  }

  %done = arith.muli %chunks, %c4 : i64
  %first = arith.addi %done, %thread : i64
  scf.for %i = %first to %count step %threads : i64 {
    %p = llvm.getelementptr %sum[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %q = llvm.getelementptr %terms[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = llvm.load %q : !llvm.ptr<1> -> f32
    %z = arith.addf %x, %y : f32
    llvm.store %z, %p : f32, !llvm.ptr<1>
  }
  gpu.return
}

gpu.func @rota_add_bf16(%sum: !llvm.ptr<1>, %terms: !llvm.ptr<1>, %count: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i64
  %c8 = arith.constant 8 : i64
  // Widened by shifts: LLVM would make additions of widened bf16 one operation
  // of bf16, which rounds once where CPUs round to f32 first.
  %shift = arith.constant 16 : i32
  %shifts = arith.constant dense<16> : vector<8xi32>
  %thread = llvm.call @rota_service_thread() : () -> i64
  %threads = llvm.call @rota_service_threads() : () -> i64

  %sumHas = llvm.call @rota_service_has_chunks(%sum, %count, %count, %count, %c8) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %termsHave = llvm.call @rota_service_has_chunks(%terms, %count, %count, %count, %c8) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %bothHave = arith.andi %sumHas, %termsHave : i1
  %whole = arith.divui %count, %c8 : i64
  %chunks = arith.select %bothHave, %whole, %c0 : i64
  scf.for %c = %thread to %chunks step %threads : i64 {
    %i = arith.muli %c, %c8 : i64
    %p = llvm.getelementptr %sum[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %q = llvm.getelementptr %terms[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %x = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
    %y = llvm.load %q {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
    %wordsX = arith.extui %x : vector<8xi16> to vector<8xi32>
    %wordsY = arith.extui %y : vector<8xi16> to vector<8xi32>
    %bitsX = arith.shli %wordsX, %shifts : vector<8xi32>
    %bitsY = arith.shli %wordsY, %shifts : vector<8xi32>
    %wideX = arith.bitcast %bitsX : vector<8xi32> to vector<8xf32>
    %wideY = arith.bitcast %bitsY : vector<8xi32> to vector<8xf32>
    %wideZ = arith.addf %wideX, %wideY : vector<8xf32>
    %z = arith.truncf %wideZ : vector<8xf32> to vector<8xbf16>
    llvm.store %z, %p {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
  }

  %done = arith.muli %chunks, %c8 : i64
  %first = arith.addi %done, %thread : i64
  scf.for %i = %first to %count step %threads : i64 {
    %p = llvm.getelementptr %sum[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %q = llvm.getelementptr %terms[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %x = llvm.load %p : !llvm.ptr<1> -> i16
    %y = llvm.load %q : !llvm.ptr<1> -> i16
    %wordX = arith.extui %x : i16 to i32
    %wordY = arith.extui %y : i16 to i32
    %bitsX = arith.shli %wordX, %shift : i32
    %bitsY = arith.shli %wordY, %shift : i32
    %wideX = arith.bitcast %bitsX : i32 to f32
    %wideY = arith.bitcast %bitsY : i32 to f32
    %wideZ = arith.addf %wideX, %wideY : f32
    %z = arith.truncf %wideZ : f32 to bf16
    llvm.store %z, %p : bf16, !llvm.ptr<1>
  }
  gpu.return
}

gpu.func @rota_round_bf16(%rounded: !llvm.ptr<1>, %values: !llvm.ptr<1>, %count: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i64
  %c8 = arith.constant 8 : i64
  %thread = llvm.call @rota_service_thread() : () -> i64
  %threads = llvm.call @rota_service_threads() : () -> i64

  // A chunk is 16 bytes of the result and 32 of the values.
  %roundedHas = llvm.call @rota_service_has_chunks(%rounded, %count, %count, %count, %c8) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %valuesHave = llvm.call @rota_service_has_chunks(%values, %count, %count, %count, %c8) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %bothHave = arith.andi %roundedHas, %valuesHave : i1
  %whole = arith.divui %count, %c8 : i64
  %chunks = arith.select %bothHave, %whole, %c0 : i64
  scf.for %c = %thread to %chunks step %threads : i64 {
    %i = arith.muli %c, %c8 : i64
    %p = llvm.getelementptr %values[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %q = llvm.getelementptr %rounded[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %x = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
    %y = arith.truncf %x : vector<8xf32> to vector<8xbf16>
    llvm.store %y, %q {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
  }

  %done = arith.muli %chunks, %c8 : i64
  %first = arith.addi %done, %thread : i64
  scf.for %i = %first to %count step %threads : i64 {
    %p = llvm.getelementptr %values[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %q = llvm.getelementptr %rounded[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = arith.truncf %x : f32 to bf16
    llvm.store %y, %q : bf16, !llvm.ptr<1>
  }
  gpu.return
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

// a + b or, with `takesMaximum`, the larger of the two, NaN if one is NaN: of
// i32, or of the bits of f32.
llvm.func internal @rota_service_join(%a: vector<4xi32>, %b: vector<4xi32>, %takesMaximum: i1, %isInteger: i1) -> vector<4xi32> attributes {always_inline} {
  %x = arith.bitcast %a : vector<4xi32> to vector<4xf32>
  %y = arith.bitcast %b : vector<4xi32> to vector<4xf32>
  %result = scf.if %takesMaximum -> (vector<4xi32>) {
    %isLarger = arith.cmpf ogt, %y, %x : vector<4xf32>
    %isNaN = arith.cmpf uno, %y, %y : vector<4xf32>
    %takesB = arith.ori %isLarger, %isNaN : vector<4xi1>
    %larger = arith.select %takesB, %b, %a : vector<4xi1>, vector<4xi32>
    %largerInteger = arith.maxsi %a, %b : vector<4xi32>
    %maximum = arith.select %isInteger, %largerInteger, %larger : vector<4xi32>
    scf.yield %maximum : vector<4xi32>
  } else {
    %sum = arith.addf %x, %y : vector<4xf32>
    %sumBits = arith.bitcast %sum : vector<4xf32> to vector<4xi32>
    %sumInteger = arith.addi %a, %b : vector<4xi32>
    %total = arith.select %isInteger, %sumInteger, %sumBits : vector<4xi32>
    scf.yield %total : vector<4xi32>
  }
  llvm.return %result : vector<4xi32>
}

// The elements of words as the bits of f32 or i32. Words of two bf16 give those
// in the low and in the high half of each word; others are all low.
llvm.func internal @rota_service_widen(%words: vector<4xi32>, %isHalf: i1) -> !llvm.struct<(vector<4xi32>, vector<4xi32>)> attributes {always_inline} {
  %bits = arith.constant dense<16> : vector<4xi32>
  %mask = arith.constant dense<0xFFFF0000> : vector<4xi32>
  %lowHalf = arith.shli %words, %bits : vector<4xi32>
  %low = arith.select %isHalf, %lowHalf, %words : vector<4xi32>
  %high = arith.andi %words, %mask : vector<4xi32>
  %none = llvm.mlir.poison : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
  %one = llvm.insertvalue %low, %none[0] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
  %both = llvm.insertvalue %high, %one[1] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
  llvm.return %both : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
}

// The bits of f32, rounded to bf16, in the low half of each word.
llvm.func internal @rota_service_round(%bits: vector<4xi32>) -> vector<4xi32> attributes {always_inline} {
  %value = arith.bitcast %bits : vector<4xi32> to vector<4xf32>
  %rounded = arith.truncf %value : vector<4xf32> to vector<4xbf16>
  %halves = arith.bitcast %rounded : vector<4xbf16> to vector<4xi16>
  %words = arith.extui %halves : vector<4xi16> to vector<4xi32>
  llvm.return %words : vector<4xi32>
}

// Combines elements in chunks of `width` elements and `bytes` bytes: chunks
// `begin` to `end`. A term is {data, stride}.
llvm.func internal @rota_service_combine_chunks(%terms: !llvm.ptr<1>, %termCount: i64, %out: !llvm.ptr<1>, %count: i64, %termLength: i64, %outLength: i64, %outStride: i64, %mode: i32, %elementBytes: i64, %isInteger: i1, %begin: i64, %end: i64, %width: i64, %bytes: i64) attributes {always_inline} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c16 = arith.constant dense<16> : vector<4xi32>
  %accumulate = arith.constant 1 : i32
  %maximum = arith.constant 2 : i32
  %false = arith.constant false
  %accumulates = arith.cmpi eq, %mode, %accumulate : i32
  %takesMaximum = arith.cmpi eq, %mode, %maximum : i32
  %isHalf = arith.cmpi eq, %elementBytes, %c2 : i64
  %thread = llvm.call @rota_service_thread() : () -> i64
  %threads = llvm.call @rota_service_threads() : () -> i64
  %firstChunk = arith.addi %begin, %thread : i64
  %data0 = llvm.load %terms : !llvm.ptr<1> -> !llvm.ptr<1>
  %strideAt0 = llvm.getelementptr %terms[0, 1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, !llvm.struct<(i64, i64)>
  %stride0 = llvm.load %strideAt0 : !llvm.ptr<1> -> i64

  scf.for %c = %firstChunk to %end step %threads : i64 {
    %i = arith.muli %c, %width : i64
    %row = llvm.call @rota_service_row(%i, %count, %termLength) : (i64, i64, i64) -> i64
    %byte0 = llvm.call @rota_service_byte(%i, %row, %termLength, %stride0, %elementBytes) : (i64, i64, i64, i64, i64) -> i64
    %words0 = llvm.call @rota_service_load(%data0, %byte0, %bytes) : (!llvm.ptr<1>, i64, i64) -> vector<4xi32>
    %first = llvm.call @rota_service_widen(%words0, %isHalf) : (vector<4xi32>, i1) -> !llvm.struct<(vector<4xi32>, vector<4xi32>)>
    %firstLow = llvm.extractvalue %first[0] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
    %firstHigh = llvm.extractvalue %first[1] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
    %sums:2 = scf.for %t = %c1 to %termCount step %c1 iter_args(%low = %firstLow, %high = %firstHigh) -> (vector<4xi32>, vector<4xi32>) : i64 {
      %dataAt = llvm.getelementptr %terms[%t, 0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i64, i64)>
      %data = llvm.load %dataAt : !llvm.ptr<1> -> !llvm.ptr<1>
      %strideAt = llvm.getelementptr %terms[%t, 1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i64, i64)>
      %stride = llvm.load %strideAt : !llvm.ptr<1> -> i64
      %byte = llvm.call @rota_service_byte(%i, %row, %termLength, %stride, %elementBytes) : (i64, i64, i64, i64, i64) -> i64
      %words = llvm.call @rota_service_load(%data, %byte, %bytes) : (!llvm.ptr<1>, i64, i64) -> vector<4xi32>
      %next = llvm.call @rota_service_widen(%words, %isHalf) : (vector<4xi32>, i1) -> !llvm.struct<(vector<4xi32>, vector<4xi32>)>
      %nextLow = llvm.extractvalue %next[0] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
      %nextHigh = llvm.extractvalue %next[1] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
      %l = llvm.call @rota_service_join(%low, %nextLow, %takesMaximum, %isInteger) : (vector<4xi32>, vector<4xi32>, i1, i1) -> vector<4xi32>
      %h = llvm.call @rota_service_join(%high, %nextHigh, %takesMaximum, %isInteger) : (vector<4xi32>, vector<4xi32>, i1, i1) -> vector<4xi32>
      scf.yield %l, %h : vector<4xi32>, vector<4xi32>
    } {loop_annotation = #no_unroll}

    %outRow = llvm.call @rota_service_row(%i, %count, %outLength) : (i64, i64, i64) -> i64
    %outByte = llvm.call @rota_service_byte(%i, %outRow, %outLength, %outStride, %elementBytes) : (i64, i64, i64, i64, i64) -> i64
    %all:2 = scf.if %accumulates -> (vector<4xi32>, vector<4xi32>) {
      %words = llvm.call @rota_service_load(%out, %outByte, %bytes) : (!llvm.ptr<1>, i64, i64) -> vector<4xi32>
      %old = llvm.call @rota_service_widen(%words, %isHalf) : (vector<4xi32>, i1) -> !llvm.struct<(vector<4xi32>, vector<4xi32>)>
      %oldLow = llvm.extractvalue %old[0] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
      %oldHigh = llvm.extractvalue %old[1] : !llvm.struct<(vector<4xi32>, vector<4xi32>)>
      %l = llvm.call @rota_service_join(%oldLow, %sums#0, %false, %isInteger) : (vector<4xi32>, vector<4xi32>, i1, i1) -> vector<4xi32>
      %h = llvm.call @rota_service_join(%oldHigh, %sums#1, %false, %isInteger) : (vector<4xi32>, vector<4xi32>, i1, i1) -> vector<4xi32>
      scf.yield %l, %h : vector<4xi32>, vector<4xi32>
    } else {
      scf.yield %sums#0, %sums#1 : vector<4xi32>, vector<4xi32>
    }

    %roundedLow = llvm.call @rota_service_round(%all#0) : (vector<4xi32>) -> vector<4xi32>
    %roundedHigh = llvm.call @rota_service_round(%all#1) : (vector<4xi32>) -> vector<4xi32>
    %shifted = arith.shli %roundedHigh, %c16 : vector<4xi32>
    %halves = arith.ori %roundedLow, %shifted : vector<4xi32>
    %result = arith.select %isHalf, %halves, %all#0 : vector<4xi32>
    llvm.call @rota_service_store(%result, %out, %outByte, %bytes) : (vector<4xi32>, !llvm.ptr<1>, i64, i64) -> ()
  }
  llvm.return
}

// Combines chunks of 16 bytes where all rows have them, then single elements.
llvm.func internal @rota_service_combine(%terms: !llvm.ptr<1>, %termCount: i64, %out: !llvm.ptr<1>, %count: i64, %termLength: i64, %outLength: i64, %outStride: i64, %mode: i32, %elementBytes: i64, %isInteger: i1) attributes {always_inline} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c16 = arith.constant 16 : i64
  %width = arith.divui %c16, %elementBytes : i64
  %outHas = llvm.call @rota_service_has_chunks(%out, %count, %outLength, %outStride, %width) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %allHave = scf.for %t = %c0 to %termCount step %c1 iter_args(%before = %outHas) -> (i1) : i64 {
    %dataAt = llvm.getelementptr %terms[%t, 0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i64, i64)>
    %data = llvm.load %dataAt : !llvm.ptr<1> -> !llvm.ptr<1>
    %strideAt = llvm.getelementptr %terms[%t, 1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i64, i64)>
    %stride = llvm.load %strideAt : !llvm.ptr<1> -> i64
    %has = llvm.call @rota_service_has_chunks(%data, %count, %termLength, %stride, %width) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
    %both = arith.andi %before, %has : i1
    scf.yield %both : i1
  } {loop_annotation = #no_unroll}
  %whole = arith.divui %count, %width : i64
  %chunks = arith.select %allHave, %whole, %c0 : i64
  %done = arith.muli %chunks, %width : i64
  llvm.call @rota_service_combine_chunks(%terms, %termCount, %out, %count, %termLength, %outLength, %outStride, %mode, %elementBytes, %isInteger, %c0, %chunks, %width, %c16) : (!llvm.ptr<1>, i64, !llvm.ptr<1>, i64, i64, i64, i64, i32, i64, i1, i64, i64, i64, i64) -> ()
  llvm.call @rota_service_combine_chunks(%terms, %termCount, %out, %count, %termLength, %outLength, %outStride, %mode, %elementBytes, %isInteger, %done, %count, %c1, %elementBytes) : (!llvm.ptr<1>, i64, !llvm.ptr<1>, i64, i64, i64, i64, i32, i64, i1, i64, i64, i64, i64) -> ()
  llvm.return
}

gpu.func @rota_combine_f32(%terms: !llvm.ptr<1>, %termCount: i64, %out: !llvm.ptr<1>, %count: i64, %termLength: i64, %outLength: i64, %outStride: i64, %mode: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %elementBytes = arith.constant 4 : i64
  %isInteger = arith.constant false
  llvm.call @rota_service_combine(%terms, %termCount, %out, %count, %termLength, %outLength, %outStride, %mode, %elementBytes, %isInteger) : (!llvm.ptr<1>, i64, !llvm.ptr<1>, i64, i64, i64, i64, i32, i64, i1) -> ()
  gpu.return
}

gpu.func @rota_combine_bf16(%terms: !llvm.ptr<1>, %termCount: i64, %out: !llvm.ptr<1>, %count: i64, %termLength: i64, %outLength: i64, %outStride: i64, %mode: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %elementBytes = arith.constant 2 : i64
  %isInteger = arith.constant false
  llvm.call @rota_service_combine(%terms, %termCount, %out, %count, %termLength, %outLength, %outStride, %mode, %elementBytes, %isInteger) : (!llvm.ptr<1>, i64, !llvm.ptr<1>, i64, i64, i64, i64, i32, i64, i1) -> ()
  gpu.return
}

gpu.func @rota_combine_i32(%terms: !llvm.ptr<1>, %termCount: i64, %out: !llvm.ptr<1>, %count: i64, %termLength: i64, %outLength: i64, %outStride: i64, %mode: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %elementBytes = arith.constant 4 : i64
  %isInteger = arith.constant true
  llvm.call @rota_service_combine(%terms, %termCount, %out, %count, %termLength, %outLength, %outStride, %mode, %elementBytes, %isInteger) : (!llvm.ptr<1>, i64, !llvm.ptr<1>, i64, i64, i64, i64, i32, i64, i1) -> ()
  gpu.return
}

// Copies chunks `begin` to `end` of `width` elements and `bytes` bytes.
llvm.func internal @rota_service_copy_chunks(%source: !llvm.ptr<1>, %destination: !llvm.ptr<1>, %count: i64, %sourceLength: i64, %sourceStride: i64, %destinationLength: i64, %destinationStride: i64, %elementBytes: i64, %begin: i64, %end: i64, %width: i64, %bytes: i64) attributes {always_inline} {
  %thread = llvm.call @rota_service_thread() : () -> i64
  %threads = llvm.call @rota_service_threads() : () -> i64
  %firstChunk = arith.addi %begin, %thread : i64
  scf.for %c = %firstChunk to %end step %threads : i64 {
    %i = arith.muli %c, %width : i64
    %row = llvm.call @rota_service_row(%i, %count, %sourceLength) : (i64, i64, i64) -> i64
    %from = llvm.call @rota_service_byte(%i, %row, %sourceLength, %sourceStride, %elementBytes) : (i64, i64, i64, i64, i64) -> i64
    %words = llvm.call @rota_service_load(%source, %from, %bytes) : (!llvm.ptr<1>, i64, i64) -> vector<4xi32>
    %toRow = llvm.call @rota_service_row(%i, %count, %destinationLength) : (i64, i64, i64) -> i64
    %to = llvm.call @rota_service_byte(%i, %toRow, %destinationLength, %destinationStride, %elementBytes) : (i64, i64, i64, i64, i64) -> i64
    llvm.call @rota_service_store(%words, %destination, %to, %bytes) : (vector<4xi32>, !llvm.ptr<1>, i64, i64) -> ()
  }
  llvm.return
}

// Copies chunks of 16 bytes where all rows have them, then single elements.
llvm.func internal @rota_service_copy(%source: !llvm.ptr<1>, %destination: !llvm.ptr<1>, %count: i64, %sourceLength: i64, %sourceStride: i64, %destinationLength: i64, %destinationStride: i64, %elementBytes: i64) attributes {always_inline} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c16 = arith.constant 16 : i64
  %width = arith.divui %c16, %elementBytes : i64
  %sourceHas = llvm.call @rota_service_has_chunks(%source, %count, %sourceLength, %sourceStride, %width) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %destinationHas = llvm.call @rota_service_has_chunks(%destination, %count, %destinationLength, %destinationStride, %width) : (!llvm.ptr<1>, i64, i64, i64, i64) -> i1
  %bothHave = arith.andi %sourceHas, %destinationHas : i1
  %whole = arith.divui %count, %width : i64
  %chunks = arith.select %bothHave, %whole, %c0 : i64
  %done = arith.muli %chunks, %width : i64
  llvm.call @rota_service_copy_chunks(%source, %destination, %count, %sourceLength, %sourceStride, %destinationLength, %destinationStride, %elementBytes, %c0, %chunks, %width, %c16) : (!llvm.ptr<1>, !llvm.ptr<1>, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
  llvm.call @rota_service_copy_chunks(%source, %destination, %count, %sourceLength, %sourceStride, %destinationLength, %destinationStride, %elementBytes, %done, %count, %c1, %elementBytes) : (!llvm.ptr<1>, !llvm.ptr<1>, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
  llvm.return
}

gpu.func @rota_copy_2(%source: !llvm.ptr<1>, %destination: !llvm.ptr<1>, %count: i64, %sourceLength: i64, %sourceStride: i64, %destinationLength: i64, %destinationStride: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %elementBytes = arith.constant 2 : i64
  llvm.call @rota_service_copy(%source, %destination, %count, %sourceLength, %sourceStride, %destinationLength, %destinationStride, %elementBytes) : (!llvm.ptr<1>, !llvm.ptr<1>, i64, i64, i64, i64, i64, i64) -> ()
  gpu.return
}

gpu.func @rota_copy_4(%source: !llvm.ptr<1>, %destination: !llvm.ptr<1>, %count: i64, %sourceLength: i64, %sourceStride: i64, %destinationLength: i64, %destinationStride: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %elementBytes = arith.constant 4 : i64
  llvm.call @rota_service_copy(%source, %destination, %count, %sourceLength, %sourceStride, %destinationLength, %destinationStride, %elementBytes) : (!llvm.ptr<1>, !llvm.ptr<1>, i64, i64, i64, i64, i64, i64) -> ()
  gpu.return
}

}
