// SPDX-License-Identifier: Apache-2.0
//
// The pipe dialect: chunks of layers, and when each rank runs which.
#ifndef ROTA_IR_PIPE_PIPE_H
#define ROTA_IR_PIPE_PIPE_H

#include "ir/pipe/Timeline.h"
#include "ir/rota/Rota.h"

#include "ir/pipe/PipeDialect.h.inc"
#include "ir/pipe/PipeEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/pipe/PipeAttributes.h.inc"
#define GET_OP_CLASSES
#include "ir/pipe/PipeOps.h.inc"

#endif // ROTA_IR_PIPE_PIPE_H
