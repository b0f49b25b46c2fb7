// SPDX-License-Identifier: Apache-2.0
//
// The text forms of options that are enums, and of a pipeline's options.
#ifndef ROTA_PASSES_TEXTOPTIONS_H
#define ROTA_PASSES_TEXTOPTIONS_H

#include "mlir/Pass/PassOptions.h"
#include "runtime/options/Names.h"

namespace rota {

/// The names of `Enum`, as the values of an option of a pass.
template <typename Enum> llvm::cl::ValuesClass valuesOf() {
  return []<size_t... I>(std::index_sequence<I...>) {
    return llvm::cl::values(
        llvm::cl::OptionEnumValue{Names<Enum>::list[I], int(I), ""}...);
  }(std::make_index_sequence<std::size(Names<Enum>::list)>());
}

/// `Options`, a struct with the options of a pipeline's passes, set by text.
/// Its values before are the defaults.
template <typename Options>
class PipelineText : public mlir::detail::PassOptions, public Options {
protected:
  /// Adds an option that sets `variable`, a member of `Options`.
  template <typename T> void add(llvm::StringRef name, T &variable) {
    if constexpr (std::is_enum_v<T>)
      texts.push_back(
          std::make_unique<Text<T>>(*this, name, variable, valuesOf<T>()));
    else
      texts.push_back(std::make_unique<Text<T>>(*this, name, variable));
  }

  template <typename T>
  void add(llvm::StringRef name, llvm::SmallVector<T> &variable) {
    texts.push_back(std::make_unique<TextList<T>>(*this, name, variable));
  }

private:
  static constexpr const char *description = "As for the pass that has it";

  template <typename T> struct Text : Option<T> {
    template <typename... Values>
    Text(PassOptions &parent, llvm::StringRef name, T &variable,
         Values &&...values)
        : Option<T>(parent, name, llvm::cl::desc(description),
                    llvm::cl::init(variable), std::move(values)...) {
      this->setCallback([this, &variable](const T &value) {
        this->optHasValue = true;
        variable = value;
      });
    }
  };
  template <typename T> struct TextList : ListOption<T> {
    TextList(PassOptions &parent, llvm::StringRef name,
             llvm::SmallVector<T> &variable)
        : ListOption<T>(parent, name, llvm::cl::desc(description)),
          variable(variable) {}

    bool handleOccurrence(unsigned position, llvm::StringRef name,
                          llvm::StringRef text) override {
      bool fails = ListOption<T>::handleOccurrence(position, name, text);
      variable.assign(this->begin(), this->end());
      return fails;
    }

    llvm::SmallVector<T> &variable;
  };
  std::vector<std::unique_ptr<llvm::cl::Option>> texts;
};

} // namespace rota

#endif // ROTA_PASSES_TEXTOPTIONS_H
