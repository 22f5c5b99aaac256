/* Text of any length and names of any bytes, written to a text file. */
#ifndef DRPS_BASE_FOLDER_ESCAPE_H
#define DRPS_BASE_FOLDER_ESCAPE_H

#include "base/folder/drps_textfile.h"

/* What a name stands in, and so which of its bytes would end it there. */
enum drps_name_in {
    DRPS_NAME_IN_TABS, /* a field of a line with tabs: a tab, a line end or a backslash becomes \t,
                          \n, \r or \\ */
    DRPS_NAME_IN_JSON, /* a JSON string, without its quotes; bytes that are no UTF-8 become U+FFFD
                        */
    DRPS_NAME_IN_CSV,  /* a field of RFC 4180, with quotes where it needs any */
    DRPS_NAME_IN_HTML  /* the text of an element, or an attribute in quotes; what is no character of
                          XML becomes U+FFFD */
};

/* Returns how many of the bytes of s [n], n > 0, are one character of UTF-8; 0: they are none. */
size_t drps_utf8_bytes(const unsigned char *s, size_t n);

DRPS_MUST_CHECK
int drps_textfile_put(struct drps_textfile *f, const char *text, size_t n, struct drps_err *err);

DRPS_MUST_CHECK
int drps_textfile_put_name(struct drps_textfile *f, enum drps_name_in in, const char *name,
                           size_t n, struct drps_err *err);

/* Write text as printf() makes it, at most 255 bytes a call. */
DRPS_MUST_CHECK
int drps_textfile_print(struct drps_textfile *f, struct drps_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Write n numbers with nine digits, which give floats back, `between` before each. */
DRPS_MUST_CHECK
int drps_textfile_put_floats(struct drps_textfile *f, const float *v, size_t n, char between,
                             struct drps_err *err);

#endif
