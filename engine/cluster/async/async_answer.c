/*
 * A server's answer to a worker that keeps copies of rows (async_cache.c): how many gradients of
 * each worker are in its rows, the rows that the worker has asked for, and with adagrad the root of
 * the mean of each row's sums of squares, in 8 bits: what float16 has without its sign and 7 bits.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/async/parts.h"
#include "engine/cluster/filters/drps_half.h"

#define HALF_MOST 65504.0F

struct async_answer {
    const struct async_job *job;
    uint32_t *chosen; /* own: [part rows] frames */
};

/* Returns the marks of a pull that needs come before; NULL: it asks for all rows. */
static const uint64_t *marks_of(const struct async_job *job, const struct drps_net_message *m)
{
    const size_t needs = drps_async_needs_bytes(job);
    return m->bytes > needs ? (const uint64_t *)m->data + needs / sizeof(uint64_t) : NULL;
}

int drps_async_answer_fits(const struct async_job *job, const struct drps_net_message *m,
                           size_t rows)
{
    const size_t words = drps_async_mark_bytes(rows) / sizeof(uint64_t);
    const uint64_t *marks = marks_of(job, m);
    if (!marks) return 1;
    if (m->bytes != drps_async_needs_bytes(job) + words * sizeof(*marks)) return 0;
    return rows % 64 == 0 || !(marks[words - 1] >> rows % 64);
}

static size_t choose(const struct async_answer *a, const uint64_t *marks,
                     const struct drps_rows *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++)
        if (!marks || marks[i / 64] >> i % 64 & 1) a->chosen[n++] = rows->index[i];
    return n;
}

static unsigned char root_of(const float *squares, uint32_t dim)
{
    float sum = 0;
    for (uint32_t k = 0; k < dim; k++)
        sum += squares[k];
    return (unsigned char)(drps_half_from(fminf(sqrtf(sum / (float)dim), HALF_MOST)) >> 7);
}

static void write_roots(const struct drps_rows *rows, uint32_t dim, unsigned char *out)
{
    for (size_t i = 0; i < rows->n; i++) {
        const float *row = drps_row_at(rows, i);
        out[i] = root_of(row + dim, dim);
    }
}

size_t drps_async_answer_write(const struct async_answer *a, const struct drps_net_message *m,
                               const struct drps_rows *rows, const uint64_t *in, void *out,
                               size_t *rows_out)
{
    const size_t head = drps_message_needs_bytes(a->job->shape->workers);
    unsigned char *at = out;
    struct drps_rows wanted = *rows;
    wanted.index = a->chosen;
    wanted.n = *rows_out = choose(a, marks_of(a->job, m), rows);
    memcpy(at, in, head);
    const size_t bytes = drps_async_write_rows(a->job, &wanted, at + head);
    if (async_has_squares(a->job)) write_roots(&wanted, a->job->dim, at + head + bytes);
    return head + drps_async_wanted_bytes(a->job, wanted.n);
}

int drps_async_answer_new(const struct async_job *job, struct async_answer **out,
                          struct drps_err *err)
{
    *out = NULL;
    if (!job->cached) return 0;
    struct async_answer *a = *out = calloc(1, sizeof(*a));
    if (a) a->job = job;
    if (a)
        a->chosen =
            drps_array_new((size_t)drps_async_part_rows(&job->o.plan->info), sizeof(*a->chosen));
    return a && a->chosen ? 0 : drps_err_set(err, -ENOMEM, "no memory for rows that are asked for");
}

void drps_async_answer_free(struct async_answer *a)
{
    if (!a) return;
    free(a->chosen);
    free(a);
}
