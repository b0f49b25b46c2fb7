// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one block that the runtime launches at the end of a step, beside
// those of transfer-services.mlir: sums of losses and squares, what the step
// does to the weights, cotangents of auxiliary losses.

// A block that is alone has eight loads under way in each thread.
#unroll = #llvm.loop_annotation<unroll = <count = 8 : i32>>

gpu.module @services {

// A number of each thread of the block.
llvm.mlir.global internal @rota_service_numbers() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<256 x f64>

// A thread sums every 256th value; then threads sum by halves.
gpu.func @rota_sum_f64(%sum: !llvm.ptr<1>, %values: !llvm.ptr<1>, %count: i64) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c128 = arith.constant 128 : i32
  %turn0 = arith.constant 0 : i64
  %turn1 = arith.constant 1 : i64
  %c255 = arith.constant 255 : i64
  %c256 = arith.constant 256 : i64
  %zero = arith.constant 0.0 : f64
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %first = arith.extui %t : i32 to i64
  %left = arith.subi %count, %first : i64
  %end = arith.addi %left, %c255 : i64
  %turns = arith.divui %end, %c256 : i64
  %own = scf.for %turn = %turn0 to %turns step %turn1 iter_args(%s = %zero) -> (f64) : i64 {
    %done = arith.muli %turn, %c256 : i64
    %i = arith.addi %done, %first : i64
    %p = llvm.getelementptr %values[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = arith.extf %v : f32 to f64
    %n = arith.addf %s, %w : f64
    scf.yield %n : f64
  } {loop_annotation = #unroll}

  %numbers = llvm.mlir.addressof @rota_service_numbers : !llvm.ptr<3>
  %mine = llvm.getelementptr %numbers[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f64
  llvm.store %own, %mine : f64, !llvm.ptr<3>
  scf.for %level = %c0 to %c8 step %c1 : i32 {
    nvvm.barrier
    %half = arith.shrui %c128, %level : i32
    %adds = arith.cmpi ult, %t, %half : i32
    scf.if %adds {
      %other = arith.addi %t, %half : i32
      %theirs = llvm.getelementptr %numbers[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f64
      %x = llvm.load %mine : !llvm.ptr<3> -> f64
      %y = llvm.load %theirs : !llvm.ptr<3> -> f64
      %s = arith.addf %x, %y : f64
      llvm.store %s, %mine : f64, !llvm.ptr<3>
    }
  }

  %isFirst = arith.cmpi eq, %t, %c0 : i32
  scf.if %isFirst {
    %total = llvm.load %mine : !llvm.ptr<3> -> f64
    llvm.store %total, %sum : f64, !llvm.ptr<1>
  }
  gpu.return
}

gpu.func @rota_note(%place: !llvm.ptr<1>, %value: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %isFirst = arith.cmpi eq, %t, %c0 : i32
  scf.if %isFirst {
    llvm.store %value, %place : i32, !llvm.ptr<1>
  }
  gpu.return
}

// The squares in their order, then the weights, are read by all threads into
// shared memory, 256 at a time. The first thread adds them one after the other.
gpu.func @rota_finish_step(%squares: !llvm.ptr<1>, %order: !llvm.ptr<1>, %orderCount: i64, %losses: !llvm.ptr<1>, %lossRows: i64, %lossCalls: i64, %lossNumbers: i64, %clip: f64, %scale: !llvm.ptr<1>, %result: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c256 = arith.constant 256 : i64
  %none = arith.constant -1 : i64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %epsilon = arith.constant 1.0e-6 : f64
  %t32 = nvvm.read.ptx.sreg.tid.x : i32
  %t = arith.extui %t32 : i32 to i64
  %isFirst = arith.cmpi eq, %t, %c0 : i64
  %numbers = llvm.mlir.addressof @rota_service_numbers : !llvm.ptr<3>
  %mine = llvm.getelementptr %numbers[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
  %weightCount = arith.muli %lossRows, %lossCalls : i64
  %count = arith.addi %orderCount, %weightCount : i64

  // In the first thread: the sums, and the first square that is not finite.
  %sums:3 = scf.for %base = %c0 to %count step %c256 iter_args(%total = %zero, %weight = %zero, %bad = %none) -> (f64, f64, i64) : i64 {
    %i = arith.addi %base, %t : i64
    %isNumber = arith.cmpi slt, %i, %count : i64
    scf.if %isNumber {
      %isSquare = arith.cmpi slt, %i, %orderCount : i64
      %number = scf.if %isSquare -> (f64) {
        %orderAt = llvm.getelementptr %order[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
        %place = llvm.load %orderAt : !llvm.ptr<1> -> i32
        %squareAt = llvm.getelementptr %squares[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f64
        %square = llvm.load %squareAt : !llvm.ptr<1> -> f64
        scf.yield %square : f64
      } else {
        %j = arith.subi %i, %orderCount : i64
        %c = arith.divui %j, %lossRows : i64
        %r = arith.remui %j, %lossRows : i64
        %row = arith.muli %r, %lossCalls : i64
        %call = arith.addi %row, %c : i64
        %first = arith.muli %call, %lossNumbers : i64
        %second = arith.addi %first, %c1 : i64
        %at = llvm.getelementptr %losses[%second] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        %loaded = llvm.load %at : !llvm.ptr<1> -> f32
        %wide = arith.extf %loaded : f32 to f64
        scf.yield %wide : f64
      }
      llvm.store %number, %mine : f64, !llvm.ptr<3>
    }
    nvvm.barrier
    %after:3 = scf.if %isFirst -> (f64, f64, i64) {
      %left = arith.subi %count, %base : i64
      %read = arith.minsi %left, %c256 : i64
      %added:3 = scf.for %k = %c0 to %read step %c1 iter_args(%a = %total, %b = %weight, %f = %bad) -> (f64, f64, i64) : i64 {
        %at = llvm.getelementptr %numbers[%k] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
        %number = llvm.load %at : !llvm.ptr<3> -> f64
        %place = arith.addi %base, %k : i64
        %isSquare = arith.cmpi slt, %place, %orderCount : i64
        %sum = arith.select %isSquare, %a, %b : f64
        %next = arith.addf %sum, %number : f64
        %nextTotal = arith.select %isSquare, %next, %a : f64
        %nextWeight = arith.select %isSquare, %b, %next : f64

        // Infinity - infinity is NaN.
        %difference = arith.subf %number, %number : f64
        %isNotFinite = arith.cmpf une, %difference, %zero : f64
        %isBad = arith.andi %isSquare, %isNotFinite : i1
        %isNew = arith.cmpi eq, %f, %none : i64
        %isFirstBad = arith.andi %isBad, %isNew : i1
        %nextBad = arith.select %isFirstBad, %place, %f : i64
        scf.yield %nextTotal, %nextWeight, %nextBad : f64, f64, i64
      }
      scf.yield %added#0, %added#1, %added#2 : f64, f64, i64
    } else {
      scf.yield %total, %weight, %bad : f64, f64, i64
    }
    nvvm.barrier
    scf.yield %after#0, %after#1, %after#2 : f64, f64, i64
  }

  scf.if %isFirst {
    %root = llvm.call_intrinsic "llvm.sqrt"(%sums#0) : (f64) -> f64
    %mean = arith.divf %root, %sums#1 : f64
    %counts = arith.cmpf ogt, %sums#1, %zero : f64
    %norm = arith.select %counts, %mean, %zero : f64
    %least = arith.addf %norm, %epsilon : f64
    %ratio = arith.divf %clip, %least : f64
    %isSmall = arith.cmpf olt, %ratio, %one : f64
    %clips = arith.cmpf ogt, %clip, %zero : f64
    %reduces = arith.andi %clips, %isSmall : i1
    %factor = arith.select %reduces, %ratio, %one : f64
    %quotient = arith.divf %factor, %sums#1 : f64
    %scaled = arith.select %counts, %quotient, %zero : f64
    %rounded = arith.truncf %scaled : f64 to f32
    llvm.store %rounded, %scale : f32, !llvm.ptr<1>
    %bad = arith.sitofp %sums#2 : i64 to f64
    %weightAt = llvm.getelementptr %result[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f64
    %badAt = llvm.getelementptr %result[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f64
    llvm.store %norm, %result : f64, !llvm.ptr<1>
    llvm.store %sums#1, %weightAt : f64, !llvm.ptr<1>
    llvm.store %bad, %badAt : f64, !llvm.ptr<1>
  }
  gpu.return
}

// Losses, then weights, then the history are read by all threads into shared
// memory. The first thread adds them one after the other and decides.
gpu.func @rota_decide_step(%losses: !llvm.ptr<1>, %lossRows: i64, %lossCalls: i64, %lossNumbers: i64, %deviations: f64, %history: !llvm.ptr<1>, %scalars: !llvm.ptr<1>, %scalarCount: i64, %scaleNumber: i64, %skipNumber: i64, %stepScalars: !llvm.ptr<1>, %result: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c64 = arith.constant 64 : i64
  %c128 = arith.constant 128 : i64
  %c256 = arith.constant 256 : i64
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %off = arith.constant 0.0 : f32
  %on = arith.constant 1.0 : f32
  %notFinite = arith.constant 1.0 : f64
  %lossSpike = arith.constant 2.0 : f64
  %normSpike = arith.constant 3.0 : f64
  %t32 = nvvm.read.ptx.sreg.tid.x : i32
  %t = arith.extui %t32 : i32 to i64
  %isFirst = arith.cmpi eq, %t, %c0 : i64
  %numbers = llvm.mlir.addressof @rota_service_numbers : !llvm.ptr<3>
  %mine = llvm.getelementptr %numbers[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
  %pairs = arith.muli %lossRows, %lossCalls : i64
  %count = arith.muli %pairs, %c2 : i64

  // The scalars of the step, but for that of finishStep and the decision.
  %reasonAt = llvm.getelementptr %result[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f64
  %lastReason = llvm.load %reasonAt : !llvm.ptr<1> -> f64
  %wasSkipped = arith.cmpf une, %lastReason, %zero : f64
  %version = arith.select %wasSkipped, %scalarCount, %c0 : i64
  scf.for %i = %t to %scalarCount step %c256 : i64 {
    %isNotScale = arith.cmpi ne, %i, %scaleNumber : i64
    %isNotSkip = arith.cmpi ne, %i, %skipNumber : i64
    %isCopied = arith.andi %isNotScale, %isNotSkip : i1
    scf.if %isCopied {
      %from = arith.addi %version, %i : i64
      %fromAt = llvm.getelementptr %scalars[%from] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %scalar = llvm.load %fromAt : !llvm.ptr<1> -> f32
      %toAt = llvm.getelementptr %stepScalars[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      llvm.store %scalar, %toAt : f32, !llvm.ptr<1>
    }
  }

  // In the first thread: the sums of losses and of weights.
  %sums:2 = scf.for %base = %c0 to %count step %c256 iter_args(%sum = %zero, %weight = %zero) -> (f64, f64) : i64 {
    %i = arith.addi %base, %t : i64
    %isNumber = arith.cmpi slt, %i, %count : i64
    scf.if %isNumber {
      %isWeight = arith.cmpi sge, %i, %pairs : i64
      %skipped = arith.select %isWeight, %pairs, %c0 : i64
      %j = arith.subi %i, %skipped : i64
      %m = arith.divui %j, %lossRows : i64
      %r = arith.remui %j, %lossRows : i64
      %row = arith.muli %r, %lossCalls : i64
      %pair = arith.addi %row, %m : i64
      %first = arith.muli %pair, %lossNumbers : i64
      %half = arith.extui %isWeight : i1 to i64
      %place = arith.addi %first, %half : i64
      %at = llvm.getelementptr %losses[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %loaded = llvm.load %at : !llvm.ptr<1> -> f32
      %number = arith.extf %loaded : f32 to f64
      llvm.store %number, %mine : f64, !llvm.ptr<3>
    }
    nvvm.barrier
    %after:2 = scf.if %isFirst -> (f64, f64) {
      %left = arith.subi %count, %base : i64
      %read = arith.minsi %left, %c256 : i64
      %added:2 = scf.for %k = %c0 to %read step %c1 iter_args(%a = %sum, %b = %weight) -> (f64, f64) : i64 {
        %at = llvm.getelementptr %numbers[%k] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
        %number = llvm.load %at : !llvm.ptr<3> -> f64
        %place = arith.addi %base, %k : i64
        %isLoss = arith.cmpi slt, %place, %pairs : i64
        %old = arith.select %isLoss, %a, %b : f64
        %next = arith.addf %old, %number : f64
        %nextSum = arith.select %isLoss, %next, %a : f64
        %nextWeight = arith.select %isLoss, %b, %next : f64
        scf.yield %nextSum, %nextWeight : f64, f64
      }
      scf.yield %added#0, %added#1 : f64, f64
    } else {
      scf.yield %sum, %weight : f64, f64
    }
    nvvm.barrier
    scf.yield %after#0, %after#1 : f64, f64
  }

  // 128 losses, then 128 norms.
  %place = arith.addi %t, %c1 : i64
  %oldAt = llvm.getelementptr %history[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f64
  %old = llvm.load %oldAt : !llvm.ptr<1> -> f64
  llvm.store %old, %mine : f64, !llvm.ptr<3>
  nvvm.barrier

  scf.if %isFirst {
    %norm = llvm.load %result : !llvm.ptr<1> -> f64
    %hasNoLoss = arith.cmpf oeq, %sums#1, %zero : f64
    %mean = arith.divf %sums#0, %sums#1 : f64
    %loss = arith.select %hasNoLoss, %zero, %mean : f64
    // Infinity - infinity is NaN.
    %lossDifference = arith.subf %loss, %loss : f64
    %normDifference = arith.subf %norm, %norm : f64
    %bothDifferences = arith.addf %lossDifference, %normDifference : f64
    %wrongAt = llvm.getelementptr %result[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f64
    %wrong = llvm.load %wrongAt : !llvm.ptr<1> -> f64
    %areDifferent = arith.cmpf une, %bothDifferences, %zero : f64
    %hasWrong = arith.cmpf oge, %wrong, %zero : f64
    %isNotFinite = arith.ori %areDifferent, %hasWrong : i1
    %steps = llvm.load %history : !llvm.ptr<1> -> f64
    %entered = arith.fptosi %steps : f64 to i64
    %window = arith.minsi %entered, %c128 : i64
    %windowNumber = arith.sitofp %window : i64 to f64
    %freedom = arith.subf %windowNumber, %one : f64
    %isOn = arith.cmpf ogt, %deviations, %zero : f64
    %isEnough = arith.cmpi sge, %window, %c64 : i64
    %compares = arith.andi %isOn, %isEnough : i1
    %spikes:2 = scf.if %compares -> (i1, i1) {
      %totals:2 = scf.for %k = %c0 to %window step %c1 iter_args(%a = %zero, %b = %zero) -> (f64, f64) : i64 {
        %lossAt = llvm.getelementptr %numbers[%k] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
        %normAt = llvm.getelementptr %lossAt[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f64
        %x = llvm.load %lossAt : !llvm.ptr<3> -> f64
        %y = llvm.load %normAt : !llvm.ptr<3> -> f64
        %nextA = arith.addf %a, %x : f64
        %nextB = arith.addf %b, %y : f64
        scf.yield %nextA, %nextB : f64, f64
      }
      %lossMean = arith.divf %totals#0, %windowNumber : f64
      %normMean = arith.divf %totals#1, %windowNumber : f64
      %squares:2 = scf.for %k = %c0 to %window step %c1 iter_args(%a = %zero, %b = %zero) -> (f64, f64) : i64 {
        %lossAt = llvm.getelementptr %numbers[%k] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
        %normAt = llvm.getelementptr %lossAt[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f64
        %x = llvm.load %lossAt : !llvm.ptr<3> -> f64
        %y = llvm.load %normAt : !llvm.ptr<3> -> f64
        %dx = arith.subf %x, %lossMean : f64
        %dy = arith.subf %y, %normMean : f64
        %xx = arith.mulf %dx, %dx : f64
        %yy = arith.mulf %dy, %dy : f64
        %nextA = arith.addf %a, %xx : f64
        %nextB = arith.addf %b, %yy : f64
        scf.yield %nextA, %nextB : f64, f64
      }
      %lossVariance = arith.divf %squares#0, %freedom : f64
      %normVariance = arith.divf %squares#1, %freedom : f64
      %lossDeviation = llvm.call_intrinsic "llvm.sqrt"(%lossVariance) : (f64) -> f64
      %normDeviation = llvm.call_intrinsic "llvm.sqrt"(%normVariance) : (f64) -> f64
      %lossBound = arith.mulf %deviations, %lossDeviation : f64
      %normBound = arith.mulf %deviations, %normDeviation : f64
      %lossRise = arith.subf %loss, %lossMean : f64
      %normRise = arith.subf %norm, %normMean : f64
      %isLossSpike = arith.cmpf ogt, %lossRise, %lossBound : f64
      %isNormSpike = arith.cmpf ogt, %normRise, %normBound : f64
      scf.yield %isLossSpike, %isNormSpike : i1, i1
    } else {
      %no = arith.constant false
      scf.yield %no, %no : i1, i1
    }
    %ofNorm = arith.select %spikes#1, %normSpike, %zero : f64
    %ofBoth = arith.select %spikes#0, %lossSpike, %ofNorm : f64
    %reason = arith.select %isNotFinite, %notFinite, %ofBoth : f64
    llvm.store %reason, %reasonAt : f64, !llvm.ptr<1>

    %hasLoss = arith.cmpf une, %sums#1, %zero : f64
    %isUpdate = arith.cmpf oeq, %reason, %zero : f64
    %enters = arith.andi %isUpdate, %hasLoss : i1
    scf.if %enters {
      %slot = arith.remui %entered, %c128 : i64
      %lossPlace = arith.addi %slot, %c1 : i64
      %normPlace = arith.addi %lossPlace, %c128 : i64
      %lossAt = llvm.getelementptr %history[%lossPlace] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f64
      %normAt = llvm.getelementptr %history[%normPlace] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f64
      %next = arith.addf %steps, %one : f64
      llvm.store %loss, %lossAt : f64, !llvm.ptr<1>
      llvm.store %norm, %normAt : f64, !llvm.ptr<1>
      llvm.store %next, %history : f64, !llvm.ptr<1>
    }

    %flag = arith.select %isUpdate, %off, %on : f32
    %flagAt = llvm.getelementptr %stepScalars[%skipNumber] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %flag, %flagAt : f32, !llvm.ptr<1>
  }
  gpu.return
}

// The weights are read by all threads into shared memory, 256 at a time. Each
// thread adds all of them, and makes every 256th cotangent.
gpu.func @rota_cotangents(%losses: !llvm.ptr<1>, %lossRows: i64, %lossCalls: i64, %lossNumbers: i64, %factors: !llvm.ptr<1>, %count: i64, %cotangents: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c256 = arith.constant 256 : i64
  %zero = arith.constant 0.0 : f64
  %t32 = nvvm.read.ptx.sreg.tid.x : i32
  %t = arith.extui %t32 : i32 to i64
  %numbers = llvm.mlir.addressof @rota_service_numbers : !llvm.ptr<3>
  %mine = llvm.getelementptr %numbers[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
  %weightCount = arith.muli %lossRows, %lossCalls : i64
  %weight = scf.for %base = %c0 to %weightCount step %c256 iter_args(%sum = %zero) -> (f64) : i64 {
    %i = arith.addi %base, %t : i64
    %isWeight = arith.cmpi slt, %i, %weightCount : i64
    scf.if %isWeight {
      %c = arith.divui %i, %lossRows : i64
      %r = arith.remui %i, %lossRows : i64
      %row = arith.muli %r, %lossCalls : i64
      %call = arith.addi %row, %c : i64
      %first = arith.muli %call, %lossNumbers : i64
      %second = arith.addi %first, %c1 : i64
      %at = llvm.getelementptr %losses[%second] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %loaded = llvm.load %at : !llvm.ptr<1> -> f32
      %wide = arith.extf %loaded : f32 to f64
      llvm.store %wide, %mine : f64, !llvm.ptr<3>
    }
    nvvm.barrier
    %left = arith.subi %weightCount, %base : i64
    %read = arith.minsi %left, %c256 : i64
    %added = scf.for %k = %c0 to %read step %c1 iter_args(%a = %sum) -> (f64) : i64 {
      %at = llvm.getelementptr %numbers[%k] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
      %number = llvm.load %at : !llvm.ptr<3> -> f64
      %next = arith.addf %a, %number : f64
      scf.yield %next : f64
    }
    nvvm.barrier
    scf.yield %added : f64
  }

  scf.for %l = %t to %count step %c256 : i64 {
    %first = arith.muli %l, %c2 : i64
    %second = arith.addi %first, %c1 : i64
    %coefficientAt = llvm.getelementptr %factors[%first] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f64
    %divisorAt = llvm.getelementptr %factors[%second] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f64
    %coefficient = llvm.load %coefficientAt : !llvm.ptr<1> -> f64
    %divisor = llvm.load %divisorAt : !llvm.ptr<1> -> f64
    %product = arith.mulf %coefficient, %weight : f64
    %quotient = arith.divf %product, %divisor : f64
    %rounded = arith.truncf %quotient : f64 to f32
    %place = llvm.getelementptr %cotangents[%l] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %rounded, %place : f32, !llvm.ptr<1>
  }
  gpu.return
}

}
