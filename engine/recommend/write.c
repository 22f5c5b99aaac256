/* Names are any bytes: both kinds of lines escape what would end a field. */
#include "engine/recommend/write.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_escape.h"

enum { NUMBER_CHARS = 64 };

static int put_text(const struct drps_lines_out *w, const char *text, struct drps_err *err)
{
    return drps_textfile_put(w->out, text, strlen(text), err);
}

static int put_name(const struct drps_lines_out *w, const char *name, size_t n,
                    struct drps_err *err)
{
    return drps_textfile_put_name(w->out, w->json ? DRPS_NAME_IN_JSON : DRPS_NAME_IN_TABS, name, n,
                                  err);
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
