/* A buffer ahead of an input file; what is left of it moves to the front when more is read. */
#include "index/reader/idx/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 64 << 10 }; /* the least room */

/* Make room for n bytes behind those that are there, which move to the front. */
static int reserve(struct drps_bytes *b, size_t n, struct drps_err *err)
{
    const size_t left = drps_bytes_left(b);
    if (left && b->at) memmove(b->buf, b->buf + b->at, left);
    b->at = 0;
    b->n = left;
    if (b->buf && b->cap >= n) return 0;
    if (n < STEP) n = STEP;
    uint8_t *grown = realloc(b->buf, n);
    if (!grown) return drps_err_set(err, -ENOMEM, "no memory to read %zu bytes", n);
    b->buf = grown;
    b->cap = n;
    return 0;
}

int drps_bytes_begin(struct drps_bytes *b, struct drps_input *in, const void *head, size_t n,
                     struct drps_err *err)
{
    b->in = in;
    b->at = b->n = 0;
    b->offset = 0;
    int rc = reserve(b, n, err);
    if (rc < 0) return rc;
    if (n) memcpy(b->buf, head, n);
    b->n = n;
    return 0;
}

void drps_bytes_free(struct drps_bytes *b)
{
    free(b->buf);
    *b = (struct drps_bytes){.in = NULL};
}

int drps_bytes_need(struct drps_bytes *b, size_t want, struct drps_err *err)
{
    if (drps_bytes_left(b) >= want) return 0;
    int rc = reserve(b, want, err);
    while (rc == 0 && b->n < want && !b->in->ended) {
        size_t got;
        rc = drps_input_read(b->in, b->buf + b->n, b->cap - b->n, &got, err);
        if (rc == 0) b->n += got;
    }
    return rc;
}
