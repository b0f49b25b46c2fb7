// SPDX-License-Identifier: Apache-2.0
//
// Properties of characters (ICU) as version 0.23 of the tokenizers package
// knows them. Its libraries follow different versions of Unicode: punctuation,
// controls and marks without a width 8, combining marks and scripts 9, normal
// forms 11, lower case and numbers 17, words 16.
#ifndef ROTA_RUNTIME_TOKENIZER_CHARACTERS_H
#define ROTA_RUNTIME_TOKENIZER_CHARACTERS_H

#include <string>

namespace rota {

/// The property White_Space.
bool isSpace(char32_t c);
/// Decimal digits, letter numbers and other numbers.
bool isNumeric(char32_t c);
/// ASCII's punctuation and symbols, and the categories P of Unicode.
bool isPunctuation(char32_t c);
/// Letters, marks, digits, connectors: \w of Unicode's regular expressions.
bool isWord(char32_t c);
/// What BERT removes: controls, formats, private use.
bool isControl(char32_t c);
/// Marks without a width (Mn).
bool isNonspacingMark(char32_t c);
/// Any mark (M).
bool isCombiningMark(char32_t c);
/// A CJK ideograph in the blocks that BERT sets apart.
bool isIdeograph(char32_t c);

/// Appends the character in lower case: one, or two for U+0130.
void appendLower(std::string &text, char32_t c);

/// A number for the script; Hiragana, Katakana and U+30FC count as Han, a space
/// and characters that are not assigned as any script.
int scriptOf(char32_t c);
inline constexpr int kAnyScript = -1;

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_CHARACTERS_H
