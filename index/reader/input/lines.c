/* Looks at lines of the input before it is read: the first ones, or all. */
#include "index/reader/input/drps_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/reader/text/drps_excerpt.h"

#define LINES_STREAM 0x6c696e6573u /* "lines" */

struct drps_span drps_next_line(const char *p, const char *end)
{
    while (p < end) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        const char *stop = feed ? feed : end;
        struct drps_span line = {p, stop > p && stop[-1] == '\r' ? stop - 1 : stop};
        while (p < line.end && drps_is_blank(*p))
            p++;
        if (p < line.end) return line;
        p = stop + 1;
    }
    return (struct drps_span){end, end};
}

static uint64_t count_feeds(const char *p, const char *end)
{
    uint64_t n = 0;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        n++;
    }
    return n;
}

/* ---- The first lines ---- */

static int take_first(const struct drps_chunks *c, uint64_t skipped, char *copy,
                      drps_take_line take, void *ctx, int *all_out, struct drps_err *err)
{
    const char *p = c->carry, *end = p + c->carry_n;
    uint64_t number = 1;
    for (int rc = 0; rc == 0;) {
        const char *from = p;
        const struct drps_span line = drps_next_line(p, end);
        number += count_feeds(from, line.p);
        const int cut = line.end == end && !c->in.ended;
        *all_out = line.p == line.end && c->in.ended && c->next_path == c->n_paths;
        if (line.p == line.end || number > skipped + DRPS_FIRST_LINES || cut) return 0;
        const size_t bytes = (size_t)(line.end - line.p);
        p = line.end;
        if (number <= skipped) continue;
        memcpy(copy, line.p, bytes);
        memset(copy + bytes, 0, DRPS_CHUNK_PAD);
        rc = take(ctx, copy, copy + bytes, number, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_lines_first(struct drps_chunks *c, uint64_t skipped, drps_take_line take, void *ctx,
                     int *all_out, struct drps_err *err)
{
    *all_out = 0;
    int rc = drps_chunks_look_ahead(c, skipped + DRPS_FIRST_LINES, DRPS_FIRST_BYTES, err);
    if (rc < 0) return rc;
    char *copy = malloc(c->carry_n + DRPS_CHUNK_PAD);
    rc = copy ? take_first(c, skipped, copy, take, ctx, all_out, err)
              : drps_err_set(err, -ENOMEM, "the first lines");
    free(copy);
    return rc;
}

/* ---- All lines ---- */

struct all_lines {
    struct drps_chunks *chunks;
    drps_take_line take;
    void *ctx;
    char *text; /* own: a piece */
    size_t text_cap;
    int header_next;        /* the next line with something on it is a header */
    uint64_t number;        /* of the next line in its file */
    uint64_t share, passed; /* lines with something on them, of all files */
};

/* Returns whether the line is the one that is drawn of its share. */
static int is_drawn(struct all_lines *a)
{
    const uint64_t at = a->passed++;
    if (a->share == 1) return 1;
    return at % a->share == drps_rng_at(LINES_STREAM, at / a->share) % a->share;
}

static int take_piece(struct all_lines *a, size_t bytes, struct drps_err *err)
{
    char *p = a->text, *stop = p + bytes;
    for (int rc = 0; rc == 0;) {
        const struct drps_span line = drps_next_line(p, stop);
        a->number += count_feeds(p, line.p);
        if (line.p == line.end) return 0;
        char *begin = a->text + (line.p - a->text);
        p = a->text + (line.end - a->text);
        if (a->header_next)
            a->header_next = 0;
        else if (is_drawn(a))
            rc = a->take(a->ctx, begin, p, a->number, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static int take_file(struct all_lines *a, struct drps_err *err)
{
    int rc = 0, last = 0;
    a->number = 1;
    while (rc == 0 && !last) {
        size_t n, lines_end;
        rc = drps_chunks_fill(a->chunks, &a->text, &a->text_cap, &n, &lines_end, &last, err);
        if (rc == 0) rc = take_piece(a, lines_end, err);
        if (rc == 0) rc = drps_chunks_keep(a->chunks, a->text + lines_end, n - lines_end, err);
    }
    return rc;
}

int drps_lines_all(struct drps_chunks *c, int headers, uint64_t share, drps_take_line take,
                   void *ctx, struct drps_err *err)
{
    struct all_lines a = {.chunks = c, .share = share, .take = take, .ctx = ctx};
    int rc;
    drps_chunks_rewind(c);
    while ((rc = drps_chunks_next_file(c, err)) > 0) {
        a.header_next = headers;
        rc = take_file(&a, err);
        if (rc < 0) break;
    }
    free(a.text);
    if (rc < 0) return rc;
    drps_chunks_rewind(c);
    return drps_chunks_first_file(c, err);
}
