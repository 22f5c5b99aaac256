/* Blanks within lines, and pieces of lines for messages. Needs nothing else. Shared inside
 * index/reader/. */
#ifndef DRPS_READER_EXCERPT_H
#define DRPS_READER_EXCERPT_H

#include <stddef.h>

static inline int drps_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The text must end with something that is no blank. */
static inline char *drps_skip_blanks(char *p)
{
    while (drps_is_blank(*p))
        p++;
    return p;
}

/* Write a printable excerpt of p .. end, for an error; cap is at least 8. Returns buf. */
char *drps_excerpt(const char *p, const char *end, char *buf, size_t cap);

#endif
