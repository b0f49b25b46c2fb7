// y[r, :] = x[r, :] - mean(x[r, :]), f32. A block of 64 threads takes every
// gridDim-th row. Sums of warps go to two buffers in turn, so that one barrier a
// row is enough.
gpu.module @kernels {
  llvm.mlir.global internal @sums() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x f32>

  gpu.func @center_rows(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %rows: i32, %columns: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
    %threads = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c5 = arith.constant 5 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %c31 = arith.constant 31 : i32
    %all = arith.constant -1 : i32
    %zero = arith.constant 0.0 : f32
    %n = arith.uitofp %columns : i32 to f32
    %lane = arith.andi %t, %c31 : i32
    %warp = arith.shrui %t, %c5 : i32
    %isFirst = arith.cmpi eq, %lane, %c0 : i32
    %sums = llvm.mlir.addressof @sums : !llvm.ptr<3>
    %last = scf.for %row = %block to %rows step %blocks iter_args(%buffer = %c0) -> (i32) : i32 {
      %start = arith.muli %row, %columns : i32
      %own = scf.for %c = %t to %columns step %threads iter_args(%sum = %zero) -> (f32) : i32 {
        %i = arith.addi %start, %c : i32
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %v = llvm.load %p : !llvm.ptr<1> -> f32
        %s = arith.addf %sum, %v : f32
        scf.yield %s : f32
      }
      %o16 = nvvm.shfl.sync bfly %all, %own, %c16, %c31 : f32 -> f32
      %s16 = arith.addf %own, %o16 : f32
      %o8 = nvvm.shfl.sync bfly %all, %s16, %c8, %c31 : f32 -> f32
      %s8 = arith.addf %s16, %o8 : f32
      %o4 = nvvm.shfl.sync bfly %all, %s8, %c4, %c31 : f32 -> f32
      %s4 = arith.addf %s8, %o4 : f32
      %o2 = nvvm.shfl.sync bfly %all, %s4, %c2, %c31 : f32 -> f32
      %s2 = arith.addf %s4, %o2 : f32
      %o1 = nvvm.shfl.sync bfly %all, %s2, %c1, %c31 : f32 -> f32
      %s1 = arith.addf %s2, %o1 : f32
      %own2 = llvm.getelementptr %sums[%buffer] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<2 x f32>
      scf.if %isFirst {
        %p = llvm.getelementptr %own2[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %s1, %p : f32, !llvm.ptr<3>
      }
      nvvm.barrier
      %pair = llvm.load %own2 {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
      %total = vector.reduction <add>, %pair, %zero : vector<2xf32> into f32
      %mean = arith.divf %total, %n : f32
      scf.for %c = %t to %columns step %threads : i32 {
        %i = arith.addi %start, %c : i32
        %p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %v = llvm.load %p : !llvm.ptr<1> -> f32
        %d = arith.subf %v, %mean : f32
        %q = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %d, %q : f32, !llvm.ptr<1>
      }
      %next = arith.subi %c1, %buffer : i32
      scf.yield %next : i32
    }
    gpu.return
  }
}
