/* Reading a filtered gradient, which a peer has sent: every length is checked before it is used. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/filters/drps_push_message.h"
#include "engine/cluster/filters/drps_values.h"
#include "engine/cluster/filters/push_format.h"
#include "index/plan/codec/drps_list.h"

struct drps_push_reader {
    float *grads;      /* own: [rows][dim] */
    float *values;     /* own: [rows * dim] of rows that are not whole */
    float *sent;       /* own: [rows * dim] */
    uint32_t *kept;    /* own: [rows * dim] */
    uint32_t *whole;   /* own: [rows] */
    uint32_t *touches; /* own: [rows] */
};

uint64_t drps_push_reader_memory(const struct drps_push_shape *most)
{
    const uint64_t bound = drps_push_bound(most);
    if (bound == UINT64_MAX) return bound;
    return most->rows * most->dim * 4 * sizeof(float) + most->rows * 2 * sizeof(uint32_t);
}

void drps_push_reader_free(struct drps_push_reader *r)
{
    if (!r) return;
    free(r->grads);
    free(r->values);
    free(r->sent);
    free(r->kept);
    free(r->whole);
    free(r->touches);
    free(r);
}

struct drps_push_reader *drps_push_reader_new(const struct drps_push_shape *most)
{
    struct drps_push_reader *r = calloc(1, sizeof(*r));
    if (!r || drps_push_bound(most) == UINT64_MAX) {
        free(r);
        return NULL;
    }
    const size_t values = most->rows * most->dim;
    r->grads = drps_array_new(values, sizeof(*r->grads));
    r->values = drps_array_new(values, sizeof(*r->values));
    r->sent = drps_array_new(values, sizeof(*r->sent));
    r->kept = drps_array_new(values, sizeof(*r->kept));
    r->whole = drps_array_new(most->rows, sizeof(*r->whole));
    r->touches = drps_array_new(most->rows, sizeof(*r->touches));
    if (r->grads && r->values && r->sent && r->kept && r->whole && r->touches) return r;
    drps_push_reader_free(r);
    return NULL;
}

/* The message at hand. */
struct cursor {
    const unsigned char *at;
    size_t left;
    struct push_head head;
    size_t whole_n, values; /* rows, and values of the others */
};

static int unfit(const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_PROTO, "a filtered gradient whose %s do not fit its rows",
                        what);
}

/* The next bytes, NULL if there are fewer. */
static const void *take(struct cursor *c, size_t bytes)
{
    const void *at = c->at;
    if (c->left < bytes) return NULL;
    c->at += bytes;
    c->left -= bytes;
    return at;
}

static int take_head(struct cursor *c, struct drps_err *err)
{
    const void *head = take(c, sizeof(c->head));
    if (head) memcpy(&c->head, head, sizeof(c->head));
    if (head && drps_values_bits(c->head.bits) && c->head.how <= PUSH_LIST) return 0;
    return drps_err_set(err, DRPS_E_PROTO, "a filtered gradient without a head that is known");
}

/* An increasing list of at most `most` numbers below `end`. */
static int take_list(struct cursor *c, size_t most, size_t end, uint32_t *out, size_t *n_out,
                     const char *what, struct drps_err *err)
{
    size_t used;
    *n_out = c->left >= 4 ? drps_list_count(c->at) : SIZE_MAX;
    if (*n_out > most || drps_list_decode(c->at, c->left, out, &used, NULL) < 0 ||
        (*n_out && out[*n_out - 1] >= end))
        return unfit(what, err);
    (void)take(c, used);
    return 0;
}

static int take_bitmap(struct cursor *c, uint32_t *out, struct drps_err *err)
{
    const unsigned char *bits = take(c, push_bitmap_bytes(c->values));
    size_t n = 0;
    if (!bits) return unfit("marks", err);
    for (size_t i = 0; i < push_bitmap_bytes(c->values); i++)
        for (unsigned byte = bits[i]; byte; byte &= byte - 1) {
            const size_t at = 8 * i + (unsigned)__builtin_ctz(byte);
            if (at >= c->values || n == c->head.kept) return unfit("marks", err);
            out[n++] = (uint32_t)at;
        }
    return n == c->head.kept ? 0 : unfit("marks", err);
}

/* Which values are sent, in r->kept; not where all are. */
static int take_kept(struct cursor *c, struct drps_push_reader *r, struct drps_err *err)
{
    size_t n = c->head.kept;
    int rc = 0;
    if (n > c->values || (c->head.how == PUSH_ALL && n != c->values)) return unfit("values", err);
    if (c->head.how == PUSH_BITMAP) rc = take_bitmap(c, r->kept, err);
    if (c->head.how == PUSH_LIST)
        rc = take_list(c, c->values, c->values, r->kept, &n, "marks", err);
    return rc == 0 && n != c->head.kept ? unfit("values", err) : rc;
}

static int take_values(struct cursor *c, struct drps_push_reader *r, struct drps_err *err)
{
    const void *data = take(c, drps_values_bytes(c->head.bits, c->head.kept));
    float *to = c->head.how == PUSH_ALL ? r->values : r->sent;
    if (!data) return unfit("values", err);
    int rc = drps_values_decode(c->head.bits, data, c->head.kept, to, err);
    if (rc < 0 || c->head.how == PUSH_ALL) return rc;
    memset(r->values, 0, c->values * sizeof(*r->values));
    for (size_t i = 0; i < c->head.kept; i++)
        r->values[r->kept[i]] = r->sent[i];
    return 0;
}

/* Put whole rows, and the others, in their places. */
static int merge(struct cursor *c, struct drps_push_reader *r, const struct drps_push_shape *shape,
                 struct drps_err *err)
{
    const size_t row = shape->dim * sizeof(float);
    const char *whole = take(c, c->whole_n * row), *others = (const char *)r->values;
    size_t next = 0;
    if (!whole) return unfit("whole rows", err);
    for (size_t i = 0; i < shape->rows; i++) {
        const int is_whole = next < c->whole_n && r->whole[next] == i;
        const char **from = is_whole ? &whole : &others;
        memcpy(r->grads + i * shape->dim, *from, row);
        *from += row;
        next += (size_t)is_whole;
    }
    return 0;
}

static int take_touches(struct cursor *c, struct drps_push_reader *r,
                        const struct drps_push_shape *shape, struct drps_err *err)
{
    size_t used;
    if (!shape->touches) return 0;
    if (c->left < 4 || drps_get_u32(c->at) != shape->rows ||
        drps_numbers_decode(c->at, c->left, r->touches, &used, NULL) < 0)
        return unfit("touches", err);
    (void)take(c, used);
    return 0;
}

int drps_push_decode(struct drps_push_reader *r, const struct drps_push_shape *shape,
                     const void *data, size_t bytes, const float **grads_out,
                     const uint32_t **touches_out, struct drps_err *err)
{
    struct cursor c = {.at = data, .left = bytes};
    int rc = take_head(&c, err);
    if (rc == 0)
        rc = take_list(&c, shape->rows, shape->rows, r->whole, &c.whole_n, "whole rows", err);
    c.values = (shape->rows - c.whole_n) * shape->dim;
    if (rc == 0) rc = take_kept(&c, r, err);
    if (rc == 0) rc = take_values(&c, r, err);
    if (rc == 0) rc = merge(&c, r, shape, err);
    if (rc == 0) rc = take_touches(&c, r, shape, err);
    if (rc == 0 && c.left) rc = unfit("bytes", err);
    *grads_out = r->grads;
    *touches_out = shape->touches ? r->touches : NULL;
    return rc;
}
