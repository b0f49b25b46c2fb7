# SPDX-License-Identifier: Apache-2.0
# Writes the bytes of FILE to OUTPUT as elements of a C++ array.
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1,\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "${bytes}")
