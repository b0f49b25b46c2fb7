//===- Updates.td - What updates of parameters read --------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Attributes of update functions (ir/rota/model/Update.h).
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_UPDATES
#define ROTA_IR_ROTA_UPDATES

include "ir/rota/Rota.td"

def Rota_ScalarKind : I32EnumAttr<"ScalarKind",
    "how the trainer computes a scalar of a step", [
    I32EnumAttrCase<"LearningRate", 0, "learning_rate">,
    I32EnumAttrCase<"GradientScale", 1, "gradient_scale">,
    I32EnumAttrCase<"Option", 2, "option">,
    I32EnumAttrCase<"Complement", 3, "complement">,
    I32EnumAttrCase<"Correction", 4, "correction">,
    I32EnumAttrCase<"Skip", 5, "skip">]> {
  let cppNamespace = "::mlir::rota";
  let genSpecializedAttr = 0;
}

def Rota_StateAttr : Rota_Attr<"State", "state"> {
  let summary = "a state that the optimizer keeps for a parameter";
  let description = [{
    Its name, and the value of each element before the first step:
    `#rota.state<name = "first_moment", initial = 0.0>`.
  }];
  let parameters = (ins StringRefParameter<"">:$name, Rota_Real<"">:$initial);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Rota_ScalarAttr : Rota_Attr<"Scalar", "scalar"> {
  let summary = "a number that the trainer computes for each step";
  let description = [{
    Computed in f64 and rounded to f32 once:

    | kind | value in update t = 1, 2, ... |
    |---|---|
    | `learning_rate` | the schedule's rate |
    | `gradient_scale` | what gradients are multiplied by: 1 / (weight of the loss), times the factor of clipping |
    | `option` | x, the value of the named option |
    | `complement` | 1 - x |
    | `correction` | 1 - x^t, the bias correction of a mean that forgets at the rate x |
    | `skip` | 1 where the step leaves parameters and states as they are, else 0; such a step is no update and has no t |

    A learning rate and an option may be multiplied by a factor: those of a
    group of parameters.

    `#rota.scalar<learning_rate>`, `#rota.scalar<correction of "beta1">`,
    `#rota.scalar<option of "weight-decay" times 0.5 : f64>`.
  }];
  let parameters = (ins EnumParameter<Rota_ScalarKind>:$kind,
                        OptionalParameter<"::mlir::StringAttr">:$option,
                        OptionalParameter<"::mlir::FloatAttr">:$factor);
  let assemblyFormat = "`<` $kind (`of` $option^)? (`times` $factor^)? `>`";
  let extraClassDeclaration = [{
    double getFactorOrOne() const {
      return getFactor() ? getFactor().getValueAsDouble() : 1.0;
    }
  }];
  let genVerifyDecl = 1;
}

def Rota_OptionAttr : Rota_Attr<"Option", "option"> {
  let summary = "a number that the user may give to the trainer";
  let description = [{
    The flag without dashes, its default, the interval of what it accepts, and
    a line of help:
    `#rota.option<name = "beta1", value = 0.9, least = 0.0, most = 0.999999999, help = "Decay of the first moment">`.
  }];
  let parameters = (ins StringRefParameter<"">:$name, Rota_Real<"">:$value,
                        Rota_Real<"">:$least, Rota_Real<"">:$most,
                        StringRefParameter<"">:$help);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // ROTA_IR_ROTA_UPDATES
