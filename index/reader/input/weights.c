/* Reads files of weights (drps_weights.h), a line ahead of the data. */
#include "index/reader/input/drps_weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/reader/input/drps_chunks.h"
#include "index/reader/text/drps_excerpt.h"
#include "index/reader/text/drps_number.h"

int drps_weights_init(struct drps_weights *w, const struct drps_io *io, const atomic_int *stop,
                      uint64_t codec_limit_bytes, struct drps_err *err)
{
    memset(w, 0, sizeof(*w));
    int rc = drps_input_init(&w->in, io, DRPS_WEIGHTS_BUFFER, codec_limit_bytes, err);
    w->in.stop = stop;
    w->buf = malloc(DRPS_WEIGHTS_BUFFER + DRPS_CHUNK_PAD);
    if (rc == 0 && !w->buf) rc = drps_err_set(err, -ENOMEM, "no memory to read weights");
    return rc;
}

void drps_weights_destroy(struct drps_weights *w)
{
    drps_input_destroy(&w->in);
    free(w->buf);
    w->buf = NULL;
}

/* Find the next line, without its end; its bytes stay until the next call. Returns 1, or 0 at the
 * end of the file. */
static int next_line(struct drps_weights *w, char **line_out, char **end_out, struct drps_err *err)
{
    for (;;) {
        char *from = w->buf + w->at, *feed = memchr(from, '\n', w->n - w->at);
        if (feed || (w->in.ended && w->at < w->n)) {
            char *end = feed ? feed : w->buf + w->n;
            *line_out = from;
            w->at = (size_t)(end - w->buf) + (feed != NULL);
            *end_out = end > from && end[-1] == '\r' ? end - 1 : end;
            w->line++;
            return 1;
        }
        if (w->in.ended) return 0;
        memmove(w->buf, from, w->n - w->at);
        w->n -= w->at;
        w->at = 0;
        if (w->n == DRPS_WEIGHTS_BUFFER)
            return drps_err_set(err, DRPS_E_FORMAT, "%s:%llu: the line is longer than %d bytes",
                                w->in.name, (unsigned long long)w->line + 1, DRPS_WEIGHTS_BUFFER);
        size_t got;
        int rc = drps_input_read(&w->in, w->buf + w->n, DRPS_WEIGHTS_BUFFER - w->n, &got, err);
        if (rc < 0) return rc;
        w->n += got;
        memset(w->buf + w->n, 0, DRPS_CHUNK_PAD);
    }
}

static int bad_weight(const struct drps_weights *w, const char *p, const char *end, const char *why,
                      struct drps_err *err)
{
    char text[64];
    return drps_err_set(err, DRPS_E_FORMAT, "%s:%llu: weight %s: '%s'", w->in.name,
                        (unsigned long long)w->line, why, drps_excerpt(p, end, text, sizeof(text)));
}

static int next_weight(struct drps_weights *w, struct drps_err *err)
{
    char *p = NULL, *end = NULL;
    int rc;
    w->has = 0;
    do {
        rc = next_line(w, &p, &end, err);
        if (rc <= 0) return rc;
        while (p < end && drps_is_blank(*p))
            p++;
        while (p < end && drps_is_blank(end[-1]))
            end--;
    } while (p == end);
    const char *after = drps_number_float(p, &w->weight);
    if (after != end)
        return bad_weight(w, p, end, after ? "is not a number" : drps_number_why(p), err);
    if (w->weight < 0) return bad_weight(w, p, end, "is negative", err);
    w->has = 1;
    return 0;
}

int drps_weights_open(struct drps_weights *w, const char *path, struct drps_err *err)
{
    w->at = w->n = 0;
    w->line = w->passed = 0;
    int rc = drps_input_open(&w->in, path, err);
    return rc < 0 ? rc : next_weight(w, err);
}

int drps_weights_pass(struct drps_weights *w, struct drps_err *err)
{
    w->passed++;
    return next_weight(w, err);
}
