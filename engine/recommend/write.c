/* Names are any bytes: both kinds of lines escape what would end a field. */
#include "engine/recommend/write.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 256, NUMBER_CHARS = 64, ESCAPED_CHARS = 8 };

static int put(const struct drps_lines_out *w, const char *text, size_t n, struct drps_err *err)
{
    for (size_t at = 0, some; at < n; at += some) {
        char *room;
        some = n - at < ROOM ? n - at : ROOM;
        const int rc = drps_textfile_room(w->out, some, &room, err);
        if (rc < 0) return rc;
        memcpy(room, text + at, some);
        drps_textfile_used(w->out, some);
    }
    return 0;
}

static int put_text(const struct drps_lines_out *w, const char *text, struct drps_err *err)
{
    return put(w, text, strlen(text), err);
}

/* ---- Escapes ---- */

/* Returns how many of the bytes of s [n] are one character of UTF-8; 0: they are none. */
static size_t utf8_bytes(const unsigned char *s, size_t n)
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

/* The escape of the character at s [n], which has *used bytes; out is empty where it needs none. */
static void escape_json(const unsigned char *s, size_t n, size_t *used, char out[ESCAPED_CHARS])
{
    *used = utf8_bytes(s, n);
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

static int put_name(const struct drps_lines_out *w, const char *name, size_t n,
                    struct drps_err *err)
{
    const unsigned char *s = (const unsigned char *)name;
    size_t begin = 0, used;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n; at += used) {
        char escape[ESCAPED_CHARS];
        (w->json ? escape_json : escape_tab)(s + at, n - at, &used, escape);
        if (!escape[0]) continue;
        rc = put(w, name + begin, at - begin, err);
        if (rc == 0) rc = put_text(w, escape, err);
        begin = at + used;
    }
    return rc == 0 ? put(w, name + begin, n - begin, err) : rc;
}

/* ---- Lines ---- */

/* The score as a float, or where it fits none as a double: digits give it back. */
static int put_score(const struct drps_lines_out *w, double score, struct drps_err *err)
{
    char text[NUMBER_CHARS];
    if (fabs(score) <= (double)FLT_MAX)
        (void)snprintf(text, sizeof(text), "%.9g", (double)(float)score);
    else
        (void)snprintf(text, sizeof(text), "%.17g", score);
    return put_text(w, text, err);
}

static int put_item(const struct drps_lines_out *w, uint32_t row, struct drps_err *err)
{
    const char *name;
    size_t n;
    const int rc = drps_rownames_get(w->items, row, &name, &n, err);
    return rc == 0 ? put_name(w, name, n, err) : rc;
}

static int write_tabs(const struct drps_lines_out *w, const char *name, size_t n,
                      const struct drps_top *found, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < found->n; i++) {
        char rank[NUMBER_CHARS];
        (void)snprintf(rank, sizeof(rank), "\t%zu\t", i + 1);
        rc = put_name(w, name, n, err);
        if (rc == 0) rc = put_text(w, rank, err);
        if (rc == 0) rc = put_item(w, found->heap[i].row, err);
        if (rc == 0) rc = put_text(w, "\t", err);
        if (rc == 0) rc = put_score(w, found->heap[i].score, err);
        if (rc == 0) rc = put_text(w, "\n", err);
    }
    return rc;
}

static int write_json(const struct drps_lines_out *w, const char *name, size_t n,
                      const struct drps_top *found, struct drps_err *err)
{
    int rc = put_text(w, "{\"", err);
    if (rc == 0) rc = put_text(w, w->query_key, err);
    if (rc == 0) rc = put_text(w, "\": \"", err);
    if (rc == 0) rc = put_name(w, name, n, err);
    if (rc == 0) rc = put_text(w, "\", \"items\": [", err);
    for (size_t i = 0; rc == 0 && i < found->n; i++) {
        rc = put_text(w, i ? ", {\"item\": \"" : "{\"item\": \"", err);
        if (rc == 0) rc = put_item(w, found->heap[i].row, err);
        if (rc == 0) rc = put_text(w, "\", \"score\": ", err);
        if (rc == 0) rc = put_score(w, found->heap[i].score, err);
        if (rc == 0) rc = put_text(w, "}", err);
    }
    return rc == 0 ? put_text(w, "]}\n", err) : rc;
}

int drps_lines_write(const struct drps_lines_out *w, const char *name, size_t n,
                     const struct drps_top *found, struct drps_err *err)
{
    /* An item's name replaces the one that was told before it. */
    char *copy = malloc(n + 1);
    if (!copy) return drps_err_set(err, -ENOMEM, "no memory for a name of %zu bytes", n);
    memcpy(copy, name, n);
    const int rc = (w->json ? write_json : write_tabs)(w, copy, n, found, err);
    free(copy);
    return rc;
}
