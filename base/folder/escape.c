/* Names are any bytes: what would end a field is escaped, the rest is written as it is. */
#include "base/folder/drps_escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 256, ESCAPED_CHARS = 8 };

int drps_textfile_put(struct drps_textfile *f, const char *text, size_t n, struct drps_err *err)
{
    for (size_t at = 0, some; at < n; at += some) {
        char *room;
        some = n - at < ROOM ? n - at : ROOM;
        const int rc = drps_textfile_room(f, some, &room, err);
        if (rc < 0) return rc;
        memcpy(room, text + at, some);
        drps_textfile_used(f, some);
    }
    return 0;
}

int drps_textfile_print(struct drps_textfile *f, struct drps_err *err, const char *format, ...)
{
    char *room;
    va_list ap;
    const int rc = drps_textfile_room(f, ROOM, &room, err);
    if (rc < 0) return rc;
    va_start(ap, format);
    const int n = vsnprintf(room, ROOM, format, ap);
    va_end(ap);
    drps_textfile_used(f, n < 0 ? 0 : n < ROOM ? (size_t)n : ROOM - 1);
    return 0;
}

/* ---- Escapes ---- */

size_t drps_utf8_bytes(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char low, high, first_low, first_high; /* of the lead, and of the byte after it */
        unsigned bytes;
    } kinds[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t bytes = kinds[i].bytes;
        if (s[0] < kinds[i].low || s[0] > kinds[i].high) continue;
        if (bytes > n) return 0;
        if (bytes > 1 && (s[1] < kinds[i].first_low || s[1] > kinds[i].first_high)) return 0;
        for (size_t k = 2; k < bytes; k++)
            if ((s[k] & 0xc0) != 0x80) return 0;
        return bytes;
    }
    return 0;
}

/* Makes the escape of the character at s [n], which has *used bytes. `out` is empty where the
 * character needs no escape. */
static void escape_json(const unsigned char *s, size_t n, size_t *used, char out[ESCAPED_CHARS])
{
    *used = drps_utf8_bytes(s, n);
    out[0] = '\0';
    if (!*used) {
        (void)snprintf(out, ESCAPED_CHARS, "\\ufffd");
        *used = 1;
    } else if (*s < 0x20) {
        (void)snprintf(out, ESCAPED_CHARS, "\\u%04x", *s);
    } else if (*s == '"' || *s == '\\') {
        (void)snprintf(out, ESCAPED_CHARS, "\\%c", *s);
    }
}

static void escape_tab(const unsigned char *s, size_t n, size_t *used, char out[ESCAPED_CHARS])
{
    static const char special[] = "\t\n\r\\", letters[] = "tnr\\";
    const char *found = *s ? strchr(special, *s) : NULL;
    (void)n;
    *used = 1;
    out[0] = '\0';
    if (found) (void)snprintf(out, ESCAPED_CHARS, "\\%c", letters[found - special]);
}

/* In CSV a quote is doubled; the field stands in quotes then. */
static void escape_csv(const unsigned char *s, size_t n, size_t *used, char out[ESCAPED_CHARS])
{
    (void)n;
    *used = 1;
    (void)snprintf(out, ESCAPED_CHARS, "%s", *s == '"' ? "\"\"" : "");
}

/* XML has neither control characters nor the two noncharacters U+FFFE and U+FFFF. */
static int is_xml(const unsigned char *s, size_t n)
{
    if (n == 1) return (*s >= 0x20 && *s != 0x7f) || *s == '\t' || *s == '\n';
    if (n == 2 && s[0] == 0xc2) return s[1] >= 0xa0;
    return n != 3 || s[0] != 0xef || s[1] != 0xbf || s[2] < 0xbe;
}

static void escape_html(const unsigned char *s, size_t n, size_t *used, char out[ESCAPED_CHARS])
{
    static const char special[] = "&<>\"'";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    *used = drps_utf8_bytes(s, n);
    const int known = *used && is_xml(s, *used);
    const char *found = known ? strchr(special, *s) : NULL;
    (void)snprintf(out, ESCAPED_CHARS, "%s",
                   !known  ? "\xef\xbf\xbd"
                   : found ? written[found - special]
                           : "");
    if (!*used) *used = 1;
}

static int put_escaped(struct drps_textfile *f, enum drps_name_in in, const char *name, size_t n,
                       struct drps_err *err)
{
    static void (*const escapes[])(const unsigned char *, size_t, size_t *,
                                   char *) = {[DRPS_NAME_IN_TABS] = escape_tab,
                                              [DRPS_NAME_IN_JSON] = escape_json,
                                              [DRPS_NAME_IN_CSV] = escape_csv,
                                              [DRPS_NAME_IN_HTML] = escape_html};
    const unsigned char *s = (const unsigned char *)name;
    size_t begin = 0, used;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n; at += used) {
        char escape[ESCAPED_CHARS];
        escapes[in](s + at, n - at, &used, escape);
        if (!escape[0]) continue;
        rc = drps_textfile_put(f, name + begin, at - begin, err);
        if (rc == 0) rc = drps_textfile_put(f, escape, strlen(escape), err);
        begin = at + used;
    }
    return rc == 0 ? drps_textfile_put(f, name + begin, n - begin, err) : rc;
}

static int needs_quotes(const char *name, size_t n)
{
    return memchr(name, ',', n) || memchr(name, '"', n) || memchr(name, '\n', n) ||
           memchr(name, '\r', n);
}

int drps_textfile_put_name(struct drps_textfile *f, enum drps_name_in in, const char *name,
                           size_t n, struct drps_err *err)
{
    const int quoted = in == DRPS_NAME_IN_CSV && needs_quotes(name, n);
    int rc = quoted ? drps_textfile_put(f, "\"", 1, err) : 0;
    if (rc == 0) rc = put_escaped(f, in, name, n, err);
    return rc == 0 && quoted ? drps_textfile_put(f, "\"", 1, err) : rc;
}

int drps_textfile_put_floats(struct drps_textfile *f, const float *v, size_t n, char between,
                             struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = drps_textfile_print(f, err, "%c%.9g", between, (double)v[i]);
    return rc;
}
