/* A page that is written: markup as it is, text escaped. The first error stays, and nothing is
 * written after it; so callers look once, at the end. Private to tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_WRITER_H
#define DRPS_TOOLS_STAT_HTML_WRITER_H

#include "base/folder/drps_escape.h"

struct html {
    struct drps_textfile file; /* own: html_end() */
    struct drps_err *err;      /* borrowed */
    int rc;
    unsigned ids; /* of elements: the last one that was given */
};

/* Begin a file that appears when it is complete; "-" is standard output. -EEXIST: there is one, and
 * `replace` is 0. The path is borrowed. */
DRPS_MUST_CHECK
int html_begin(struct html *h, const struct drps_io *io, const char *path, int replace,
               struct drps_err *err);

/* Give the file its name, unless something has failed; then nothing is left of it. */
DRPS_MUST_CHECK
int html_end(struct html *h);

/* Constant markup. */
void html_raw(struct html *h, const char *markup);

/* Any text: nothing of it becomes markup. NULL is "-". */
void html_text(struct html *h, const char *text);

/* Markup with numbers in it, at most 255 bytes. Text of files has no place in it. */
void html_print(struct html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* <tag>text</tag> */
void html_element(struct html *h, const char *tag, const char *text);

#endif
