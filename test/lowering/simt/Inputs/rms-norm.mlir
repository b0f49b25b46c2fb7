// y[r, :] = x[r, :] * gain / sqrt(mean(x[r, :]^2) + 1e-5), bf16. 128 threads and
// one block for each row; columns are a multiple of 8.
gpu.module @kernels {
  llvm.mlir.global internal @sums() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x f32>

  gpu.func @rms_norm(%x: !llvm.ptr<1>, %gain: !llvm.ptr<1>, %y: !llvm.ptr<1>, %columns: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %row = nvvm.read.ptx.sreg.ctaid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c5 = arith.constant 5 : i32
    %c8 = arith.constant 8 : i32
    %c31 = arith.constant 31 : i32
    %c1024 = arith.constant 1024 : i32
    %all = arith.constant -1 : i32
    %zero = arith.constant 0.0 : f32
    %zeros = arith.constant dense<0.0> : vector<8xf32>
    %first = arith.muli %t, %c8 : i32
    %start = arith.muli %row, %columns : i32

    // Squares of a thread's columns.
    %squares = scf.for %c = %first to %columns step %c1024 iter_args(%sum = %zeros) -> (vector<8xf32>) : i32 {
      %i = arith.addi %start, %c : i32
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
      %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
      %s = math.fma %f, %f, %sum : vector<8xf32>
      scf.yield %s : vector<8xf32>
    }
    %own = vector.reduction <add>, %squares, %zero : vector<8xf32> into f32

    // The warp's sum, in every lane.
    %warpSum:2 = scf.for %k = %c0 to %c5 step %c1 iter_args(%sum = %own, %distance = %c1) -> (f32, i32) : i32 {
      %other = nvvm.shfl.sync bfly %all, %sum, %distance, %c31 : f32 -> f32
      %s = arith.addf %sum, %other : f32
      %d = arith.shli %distance, %c1 : i32
      scf.yield %s, %d : f32, i32
    }
    %lane = arith.andi %t, %c31 : i32
    %warp = arith.shrui %t, %c5 : i32
    %isFirst = arith.cmpi eq, %lane, %c0 : i32
    %sums = llvm.mlir.addressof @sums : !llvm.ptr<3>
    scf.if %isFirst {
      %p = llvm.getelementptr %sums[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      llvm.store %warpSum#0, %p : f32, !llvm.ptr<3>
    }
    nvvm.barrier
    %total = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
      %p = llvm.getelementptr %sums[%k] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      %v = llvm.load %p : !llvm.ptr<3> -> f32
      %s = arith.addf %sum, %v : f32
      scf.yield %s : f32
    }

    %epsilon = arith.constant 1.0e-5 : f32
    %n = arith.uitofp %columns : i32 to f32
    %mean = arith.divf %total, %n : f32
    %biased = arith.addf %mean, %epsilon : f32
    %scale = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%biased) : (f32) -> f32
    %scales = vector.broadcast %scale : f32 to vector<8xf32>
    scf.for %c = %first to %columns step %c1024 : i32 {
      %i = arith.addi %start, %c : i32
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
      %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
      %g = llvm.getelementptr %gain[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      %gv = llvm.load %g {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
      %gf = arith.extf %gv : vector<8xbf16> to vector<8xf32>
      %scaled = arith.mulf %f, %scales : vector<8xf32>
      %r = arith.mulf %scaled, %gf : vector<8xf32>
      %b = arith.truncf %r : vector<8xf32> to vector<8xbf16>
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, bf16
      llvm.store %b, %q {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
    }
    gpu.return
  }
}
