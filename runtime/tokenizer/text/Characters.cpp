// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/Characters.h"
#include "runtime/tokenizer/text/NewCharacters.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

namespace rota {

static bool isOf(char32_t c, uint32_t categories) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & categories) != 0;
}

/// Whether that version of Unicode has the character.
static bool isIn(uint8_t version, char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] <= version;
}

/// Whether the character is newer than ICU's tables and of a category that
/// begins with one of the letters.
static bool isNew(char32_t c, std::string_view letters) {
  return isOf(c, U_GC_CN_MASK) &&
         std::ranges::any_of(newCharacters(), [&](const NewCharacters &row) {
           return c >= row.first && c <= row.last &&
                  letters.find(row.property[0]) != letters.npos;
         });
}

bool isSpace(char32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= '\t' && c <= '\r');
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE);
}

bool isNumeric(char32_t c) {
  constexpr bool (*isNewest)(char32_t) = [](char32_t c) { // Unicode 17
    return (c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6);
  };
  return isOf(c, U_GC_ND_MASK | U_GC_NL_MASK | U_GC_NO_MASK) || isNew(c, "N") ||
         isNewest(c);
}

bool isPunctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  constexpr char32_t kChanged[] = {0x166D, 0x111C9}; // of other categories now
  return (isOf(c, U_GC_P_MASK) && isIn(8, c)) || c == kChanged[0] ||
         c == kChanged[1];
}

bool isWord(char32_t c) {
  constexpr char32_t kJoiners[] = {0x200C, 0x200D};
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) ||
         isOf(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         c == kJoiners[0] || c == kJoiners[1] || isNew(c, "LMN");
}

bool isControl(char32_t c) {
  return isOf(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && isIn(8, c);
}

bool isNonspacingMark(char32_t c) {
  if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9 || c == 0x1734)
    return c == 0x1734; // categories that have changed
  return isOf(c, U_GC_MN_MASK) && isIn(8, c);
}

bool isCombiningMark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3 || c == 0x111C9)
    return c != 0x111C9; // categories that have changed
  return isOf(c, U_GC_M_MASK) && isIn(9, c);
}

bool isIdeograph(char32_t c) {
  constexpr struct {
    char32_t first, last;
  } blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (auto block : blocks)
    if (c >= block.first && c <= block.last)
      return true;
  return false;
}

/// The lower case of capitals that are newer than ICU's tables.
static char32_t lowerOfNew(char32_t c) {
  constexpr struct {
    char32_t capital, lower;
  } pairs[] = {{0x1C89, 0x1C8A}, {0xA7CB, 0x0264}, {0xA7CC, 0xA7CD},
               {0xA7CE, 0xA7CF}, {0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D5},
               {0xA7DA, 0xA7DB}, {0xA7DC, 0x019B}};
  for (auto pair : pairs)
    if (c == pair.capital)
      return pair.lower;
  if (c >= 0x10D50 && c <= 0x10D65) // Garay
    return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) // Beria Erfe
    return c + 0x1B;
  return c;
}

void appendLower(std::string &text, char32_t c) {
  constexpr char32_t kDottedI = 0x130, kDot = 0x307;
  if (c == kDottedI) {
    text += 'i';
    return appendChar(text, kDot);
  }
  char32_t lower = static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
  appendChar(text, lower == c ? lowerOfNew(c) : lower);
}

int scriptOf(char32_t c) {
  constexpr char32_t kProlongedSound = 0x30FC;
  if (c == ' ')
    return kAnyScript;
  if (c == kProlongedSound)
    return USCRIPT_HAN;
  UErrorCode error = U_ZERO_ERROR;
  UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &error);
  if (script == USCRIPT_UNKNOWN || !isIn(9, c))
    return kAnyScript;
  bool isKana = script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA;
  return isKana ? USCRIPT_HAN : script;
}

} // namespace rota
