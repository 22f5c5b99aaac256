/* Cuts the input into pieces of whole lines. Needs input/ for the bytes. */
#include "index/reader/input/drps_chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_MIN = 32 << 10,
    PIECE_MAX = 1 << 20, /* text, keys and values of a piece then stay within the caches */
    BUFFER_MIN = 16 << 10,
    BUFFER_MAX = 256 << 10,
    HEAD_BYTES = 64 << 10,
    HEAD_LINES = 8,
};
static const uint64_t codec_min_bytes = 72u << 20; /* xz -9 wants 65 MiB, zstd -19 wants 8 */

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
    return v < low ? low : v > high ? high : v;
}

int drps_chunks_init(struct drps_chunks *c, const struct drps_io *io, const char *const *paths,
                     size_t n_paths, uint64_t memory_bytes, struct drps_err *err)
{
    memset(c, 0, sizeof(*c));
    c->paths = paths;
    c->n_paths = n_paths;
    c->piece_bytes = (size_t)clamp(memory_bytes / 32, PIECE_MIN, PIECE_MAX);
    c->memory_bytes = memory_bytes;
    /* Names keep their length in 32 bits. */
    c->line_limit = clamp(memory_bytes / 2, c->piece_bytes, UINT32_MAX - DRPS_CHUNK_PAD);
    return drps_input_init(&c->in, io, (size_t)clamp(memory_bytes / 16, BUFFER_MIN, BUFFER_MAX),
                           memory_bytes > codec_min_bytes ? memory_bytes : codec_min_bytes, err);
}

void drps_chunks_destroy(struct drps_chunks *c)
{
    drps_input_destroy(&c->in);
    free(c->carry);
    c->carry = NULL;
}

/* Make room for n bytes and the pad. What the buffer holds stays. */
static int reserve(char **text, size_t *cap, size_t n, struct drps_err *err)
{
    if (*text && *cap >= n) return 0;
    char *grown = realloc(*text, n + DRPS_CHUNK_PAD);
    if (!grown) return drps_err_set(err, -ENOMEM, "no memory for %zu bytes of text", n);
    *text = grown;
    *cap = n;
    return 0;
}

int drps_chunks_keep(struct drps_chunks *c, const char *rest, size_t n, struct drps_err *err)
{
    int rc = reserve(&c->carry, &c->carry_cap, n, err);
    if (rc < 0) return rc;
    if (n > 0) memcpy(c->carry, rest, n);
    c->carry_n = n;
    return 0;
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 0;
    const char *end = text + n;
    for (const char *p = text; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return lines;
}

/* Read on until c->carry has HEAD_BYTES and so many lines, or `most` bytes. */
static int read_lines(struct drps_chunks *c, size_t lines, size_t most, struct drps_err *err)
{
    int rc = reserve(&c->carry, &c->carry_cap, most, err);
    while (rc == 0 && c->carry_n < most) {
        if (c->carry_n >= HEAD_BYTES && count_lines(c->carry, c->carry_n) >= lines) break;
        size_t want = most - c->carry_n, got;
        if (want > HEAD_BYTES) want = HEAD_BYTES;
        rc = drps_input_read(&c->in, c->carry + c->carry_n, want, &got, err);
        if (rc < 0 || got == 0) break;
        c->carry_n += got;
    }
    if (rc == 0) memset(c->carry + c->carry_n, 0, DRPS_CHUNK_PAD);
    return rc;
}

int drps_chunks_look_ahead(struct drps_chunks *c, size_t lines, size_t most, struct drps_err *err)
{
    most = (size_t)clamp(most, 0, c->memory_bytes / 8);
    return c->carry_n < most ? read_lines(c, lines, most, err) : 0;
}

static int read_head(struct drps_chunks *c, struct drps_err *err)
{
    c->carry_n = 0;
    int rc = read_lines(c, HEAD_LINES, c->piece_bytes, err);
    if (rc < 0) return rc;
    if (!c->within && c->carry_n >= 3 && memcmp(c->carry, "\xef\xbb\xbf", 3) == 0) {
        c->carry_n -= 3;
        memmove(c->carry, c->carry + 3, c->carry_n);
    }
    memset(c->carry + c->carry_n, 0, DRPS_CHUNK_PAD);
    return 0;
}

/* Open what is to be read of a file. */
static int open_path(struct drps_chunks *c, size_t path, struct drps_err *err)
{
    const struct drps_reader_share *s = c->share;
    const uint64_t from = s && s->begin.path == path ? s->begin.byte : 0;
    const uint64_t to = s && s->end.path == path ? s->end.byte : UINT64_MAX;
    c->within = from > 0;
    c->file_lines = from > 0 ? s->lines : 0;
    if (from == 0 && to == UINT64_MAX) return drps_input_open(&c->in, c->paths[path], err);
    return drps_input_open_part(&c->in, c->paths[path], from, to, err);
}

/* Returns the number of paths to read from. */
static size_t paths_end(const struct drps_chunks *c)
{
    return c->share ? c->share->end.path + (c->share->end.byte > 0) : c->n_paths;
}

int drps_chunks_next_file(struct drps_chunks *c, struct drps_err *err)
{
    drps_input_close(&c->in);
    c->in_file = 0;
    c->carry_n = 0;
    if (c->next_path >= paths_end(c)) return 0;
    int rc = open_path(c, c->next_path++, err);
    if (rc < 0) return rc;
    rc = read_head(c, err);
    if (rc < 0) return rc;
    c->in_file = 1;
    return 1;
}

int drps_chunks_first_file(struct drps_chunks *c, struct drps_err *err)
{
    int rc;
    do {
        rc = drps_chunks_next_file(c, err);
    } while (rc > 0 && c->carry_n == 0);
    return rc < 0 ? rc : 0;
}

void drps_chunks_rewind(struct drps_chunks *c)
{
    drps_input_close(&c->in);
    c->in.all_bytes = 0;
    c->next_path = c->share ? c->share->begin.path : 0;
    c->in_file = 0;
    c->carry_n = 0;
    c->file_lines = 0;
}

void drps_chunks_take_share(struct drps_chunks *c, const struct drps_reader_share *share)
{
    c->share = share;
    drps_chunks_rewind(c);
}

static int line_too_long(const struct drps_chunks *c, struct drps_err *err)
{
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "%s:%llu: the line is longer than %llu bytes, half of the reader's memory (%llu "
        "MiB): is this a text file? If so, give more memory",
        c->in.name, (unsigned long long)c->file_lines + 1, (unsigned long long)c->line_limit,
        (unsigned long long)c->memory_bytes >> 20);
}

/* Read up to `want` more bytes behind *n; fewer only at the end of the file. */
static int read_more(struct drps_chunks *c, char *text, size_t want, size_t *n,
                     struct drps_err *err)
{
    size_t stop = *n + want;
    while (*n < stop && !c->in.ended) {
        size_t got;
        int rc = drps_input_read(&c->in, text + *n, stop - *n, &got, err);
        if (rc < 0) return rc;
        *n += got;
    }
    return 0;
}

int drps_chunks_fill(struct drps_chunks *c, char **text, size_t *cap, size_t *n, size_t *lines_end,
                     int *last, struct drps_err *err)
{
    size_t want = c->carry_n > c->piece_bytes ? c->carry_n : c->piece_bytes;
    size_t seen = 0; /* no line feed before */
    const char *feed = NULL;
    int rc = reserve(text, cap, want + 1, err); /* + 1: a line feed may be added */

    if (rc < 0) return rc;
    if (c->carry_n > 0) memcpy(*text, c->carry, c->carry_n);
    *n = c->carry_n;
    c->carry_n = 0;
    for (;;) {
        rc = read_more(c, *text, want - *n, n, err);
        if (rc < 0) return rc;
        feed = memrchr(*text + seen, '\n', *n - seen);
        if (feed || c->in.ended) break;
        seen = *n;
        if (*n >= c->line_limit) return line_too_long(c, err);
        /*
         * Read a piece at a time, so that little follows the line. The room grows by doubling.
         */
        want = (size_t)clamp(*n + c->piece_bytes, 0, c->line_limit);
        if (want + 1 > *cap) {
            size_t room = (size_t)clamp(2 * (uint64_t)*cap, want + 1, c->line_limit + 1);
            rc = reserve(text, cap, room, err);
            if (rc < 0) return rc;
        }
    }
    *last = c->in.ended;
    *lines_end = feed ? (size_t)(feed - *text) + 1 : 0;
    if (c->in.ended && *lines_end < *n) {
        (*text)[(*n)++] = '\n';
        *lines_end = *n;
    }
    memset(*text + *n, 0, DRPS_CHUNK_PAD);
    return 0;
}
