// y[r, :] = softmax(x[r, :]), f32, at most 512 columns, a multiple of 4. Two
// warps, each with a row of its own. A lane computes every 32nd column and
// stores four neighbouring ones: lanes exchange them through shared memory.
gpu.module @kernels {
  llvm.mlir.global internal @rows() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x f32>

  gpu.func @softmax(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %rows: i32, %columns: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c5 = arith.constant 5 : i32
    %c31 = arith.constant 31 : i32
    %c32 = arith.constant 32 : i32
    %c128 = arith.constant 128 : i32
    %c512 = arith.constant 512 : i32
    %all = arith.constant -1 : i32
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant -1.0e30 : f32
    %log2e = arith.constant 1.44269504 : f32
    %lane = arith.andi %t, %c31 : i32
    %warp = arith.shrui %t, %c5 : i32
    %pair = arith.muli %block, %c2 : i32
    %row = arith.addi %pair, %warp : i32
    %isRow = arith.cmpi ult, %row, %rows : i32
    scf.if %isRow {
      %start = arith.muli %row, %columns : i32
      %xs = llvm.getelementptr %x[%start] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %ys = llvm.getelementptr %y[%start] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %base = llvm.mlir.addressof @rows : !llvm.ptr<3>
      %offset = arith.muli %warp, %c512 : i32
      %own = llvm.getelementptr %base[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32

      %most = scf.for %c = %lane to %columns step %c32 iter_args(%m = %lowest) -> (f32) : i32 {
        %p = llvm.getelementptr %xs[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %v = llvm.load %p : !llvm.ptr<1> -> f32
        %n = arith.maximumf %m, %v : f32
        scf.yield %n : f32
      }
      %max:2 = scf.for %k = %c0 to %c5 step %c1 iter_args(%m = %most, %d = %c1) -> (f32, i32) : i32 {
        %o = nvvm.shfl.sync bfly %all, %m, %d, %c31 : f32 -> f32
        %n = arith.maximumf %m, %o : f32
        %e = arith.shli %d, %c1 : i32
        scf.yield %n, %e : f32, i32
      }
      %part = scf.for %c = %lane to %columns step %c32 iter_args(%s = %zero) -> (f32) : i32 {
        %p = llvm.getelementptr %xs[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %v = llvm.load %p : !llvm.ptr<1> -> f32
        %d = arith.subf %v, %max#0 : f32
        %l = arith.mulf %d, %log2e : f32
        %e = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%l) : (f32) -> f32
        %q = llvm.getelementptr %own[%c] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store %e, %q : f32, !llvm.ptr<3>
        %n = arith.addf %s, %e : f32
        scf.yield %n : f32
      }
      %sum:2 = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %part, %d = %c1) -> (f32, i32) : i32 {
        %o = nvvm.shfl.sync bfly %all, %s, %d, %c31 : f32 -> f32
        %n = arith.addf %s, %o : f32
        %e = arith.shli %d, %c1 : i32
        scf.yield %n, %e : f32, i32
      }
      %inverse = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%sum#0) : (f32) -> f32
      %inverses = vector.broadcast %inverse : f32 to vector<4xf32>
      nvvm.bar.warp.sync %all : i32
      %first = arith.muli %lane, %c4 : i32
      scf.for %c = %first to %columns step %c128 : i32 {
        %p = llvm.getelementptr %own[%c] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
        %r = arith.mulf %v, %inverses : vector<4xf32>
        %q = llvm.getelementptr %ys[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        llvm.store %r, %q {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
      }
    }
    gpu.return
  }
}
