/* How often a byte occurs in text. Private to index/reader/ and its folders. */
#ifndef DRPS_INDEX_READER_TEXT_COUNT_H
#define DRPS_INDEX_READER_TEXT_COUNT_H

#include <stddef.h>

/* Returns how many of the n bytes are c. */
size_t drps_text_count(const char *text, size_t n, char c);

#endif
