/* Reading a filtered gradient, which a peer has sent: every length is checked before it is used. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/filters/drps_marks.h"
#include "engine/cluster/filters/drps_push_message.h"
#include "engine/cluster/filters/drps_values.h"
#include "engine/cluster/filters/push_format.h"
#include "index/plan/codec/drps_list.h"

struct drps_push_reader {
    float *grads;      /* own: [rows][dim] */
    float *values;     /* own: [rows * dim] of rows that are not whole */
    float *sent;       /* own: [rows * dim] room, and at last values of rows that are whole */
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
    struct drps_marks whole, kept; /* which rows are, and which values of the others are sent */
    size_t values;                 /* of the others */
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
    if (head && drps_values_bits(c->head.bits) && drps_values_bits(c->head.whole_bits)) return 0;
    return drps_err_set(err, DRPS_E_PROTO, "a filtered gradient without a head that is known");
}

/* Marks of some of `end` things, listed in out. */
static int take_marks(struct cursor *c, size_t end, uint32_t *out, struct drps_marks *marks,
                      const char *what, struct drps_err *err)
{
    if (drps_marks_decode(c->at, c->left, end, out, marks) < 0) return unfit(what, err);
    (void)take(c, marks->bytes);
    return 0;
}

static int take_floats(struct cursor *c, uint32_t bits, size_t n, float *to, const char *what,
                       struct drps_err *err)
{
    const void *data = take(c, drps_values_bytes(bits, n));
    return data ? drps_values_decode(bits, data, n, to, err) : unfit(what, err);
}

/* Values of rows that are not whole. */
static int take_values(struct cursor *c, struct drps_push_reader *r, struct drps_err *err)
{
    float *to = c->kept.all ? r->values : r->sent;
    int rc = take_floats(c, c->head.bits, c->kept.n, to, "values", err);
    if (rc < 0 || c->kept.all) return rc;
    memset(r->values, 0, c->values * sizeof(*r->values));
    for (size_t i = 0; i < c->kept.n; i++)
        r->values[r->kept[i]] = r->sent[i];
    return 0;
}

/* Put whole rows, and the others, in their places. */
static void merge(const struct cursor *c, struct drps_push_reader *r,
                  const struct drps_push_shape *shape)
{
    const size_t row = shape->dim * sizeof(float);
    const char *whole = (const char *)r->sent, *others = (const char *)r->values;
    size_t next = 0;
    for (size_t i = 0; i < shape->rows; i++) {
        const int is_whole = c->whole.all || (next < c->whole.n && r->whole[next] == i);
        const char **from = is_whole ? &whole : &others;
        memcpy(r->grads + i * shape->dim, *from, row);
        *from += row;
        next += (size_t)is_whole;
    }
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
    if (rc == 0) rc = take_marks(&c, shape->rows, r->whole, &c.whole, "whole rows", err);
    c.values = (shape->rows - c.whole.n) * shape->dim;
    if (rc == 0) rc = take_marks(&c, c.values, r->kept, &c.kept, "marks", err);
    if (rc == 0) rc = take_values(&c, r, err);
    if (rc == 0)
        rc = take_floats(&c, c.head.whole_bits, c.whole.n * shape->dim, r->sent, "whole rows", err);
    if (rc == 0) merge(&c, r, shape);
    if (rc == 0) rc = take_touches(&c, r, shape, err);
    if (rc == 0 && c.left) rc = unfit("bytes", err);
    *grads_out = r->grads;
    *touches_out = shape->touches ? r->touches : NULL;
    return rc;
}
