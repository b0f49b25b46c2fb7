// RUN: not rota-opt %s -build-updates=optimizer=adam 2>&1 | FileCheck %s
// CHECK: error: expected an optimizer out of adamw, sgd, muon, got 'adam'
