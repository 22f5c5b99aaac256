/*
 * Filtered pulls: a server leaves rows out of a message of which the worker has a copy that is as
 * published, and sends what it has published of the others. A message of n rows is
 *
 *   marks    with tag DRPS_MESSAGE_COPIES: a bit for each row, in whole u64: 1: it is left out
 *   rows     the others, as fresh.h has them, each of as many bits as the tag says
 *
 * Where marks would be longer than what they leave out, all rows are sent. A message with a value
 * that is no finite number is of 32 bits.
 */
#include <string.h>

#include "engine/cluster/published/drps_rowvalues.h"
#include "engine/cluster/rounds_internal.h"

static uint32_t bits_of(const struct drps_rounds *r)
{
    return drps_pull_options_of(r->o.pull)->bits;
}

/* ---- The server ---- */

static const float *row_at(const struct rounds_open *o, uint32_t frame)
{
    return (const float *)(const void *)((const char *)o->rows.base + frame * o->rows.stride);
}

/* The slot of the i-th row that was chosen for a worker. */
static uint32_t slot_of(const struct drps_rounds *r, const struct rounds_open *o, size_t i)
{
    return o->published.slot[o->u.positions[r->server.uses[i]]];
}

static int has_copy(const struct drps_rounds *r, const struct rounds_open *o, uint32_t to, size_t i)
{
    const uint32_t slot = slot_of(r, o, i);
    return slot != DRPS_NOT_PUBLISHED &&
           drps_published_has(drps_pull_published(r->o.pull), slot, to);
}

static int are_marks_shorter(const struct drps_rounds *r, const struct rounds_open *o, uint32_t to,
                             size_t n)
{
    size_t copies = 0;
    for (size_t i = 0; i < n; i++)
        copies += (size_t)has_copy(r, o, to, i);
    return copies * drps_rowvalues_bytes(bits_of(r), r->dim) > rounds_mark_bytes(n);
}

/* Write to `values` [dim] what the worker gets of the i-th row. Returns whether all are finite. */
static int publish(struct drps_rounds *r, const struct rounds_open *o, uint32_t to, size_t i,
                   float *values)
{
    const uint32_t slot = slot_of(r, o, i);
    const float *row = row_at(o, r->server.index[i]);
    if (slot != DRPS_NOT_PUBLISHED)
        row = drps_published_send(drps_pull_published(r->o.pull), slot, to,
                                  o->published.keeps[r->server.uses[i]], row);
    memcpy(values, row, r->dim * sizeof(*values));
    return drps_rowvalues_round(bits_of(r), values, r->dim);
}

/* Mark the i-th row, of which the worker has a copy. */
static void leave_out(struct drps_rounds *r, const struct rounds_open *o, uint32_t to, size_t i,
                      unsigned char *marks)
{
    struct drps_pull_counts *counts = drps_pull_counts_of(r->o.pull);
    const int changed = drps_published_leave_out(drps_pull_published(r->o.pull), slot_of(r, o, i),
                                                 to, o->published.keeps[r->server.uses[i]]);
    marks[i / 8] |= (unsigned char)(1U << i % 8);
    *(changed ? &counts->below : &counts->unchanged) += 1;
    rounds_count_sent(r, &r->server.sent, changed ? DRPS_TRAFFIC_BELOW : DRPS_TRAFFIC_UNCHANGED, to,
                      1, 0);
}

/* Divide the n rows that were chosen into those that are left out, and others, whose values are put
 * to s->rounded, and their row numbers to the front of s->chosen. Returns how many others there
 * are. */
static size_t divide(struct drps_rounds *r, const struct rounds_open *o, uint32_t to, size_t n,
                     unsigned char *marks, int *finite_out)
{
    struct rounds_server *s = &r->server;
    size_t others = 0;
    *finite_out = 1;
    for (size_t i = 0; i < n; i++) {
        if (marks && has_copy(r, o, to, i)) {
            leave_out(r, o, to, i, marks);
            continue;
        }
        *finite_out &= publish(r, o, to, i, s->rounded + others * r->dim);
        if (o->has_ids) s->chosen[others] = s->chosen[i];
        s->order[others] = (uint32_t)others;
        others++;
    }
    return others;
}

static void count_message(struct drps_rounds *r, enum drps_traffic_kind kind, uint32_t to,
                          size_t rows, size_t sent, size_t head, size_t values)
{
    struct drps_pull_counts *counts = drps_pull_counts_of(r->o.pull);
    rounds_count_sent(r, &r->server.sent, kind, to, sent, values);
    rounds_count_sent(r, &r->server.sent, DRPS_TRAFFIC_MARKS, to, 0, head);
    counts->rows += rows;
    counts->plain_bytes += rows * r->dim * sizeof(float);
    counts->sent_bytes += head + values;
}

size_t drps_rounds_put_published(struct drps_rounds *r, const struct rounds_open *o, uint32_t to,
                                 size_t n, unsigned char *data, uint32_t *tag_out)
{
    struct rounds_server *s = &r->server;
    const enum drps_traffic_kind kind = o == s->now ? DRPS_TRAFFIC_PULLED : DRPS_TRAFFIC_AHEAD;
    const int marks = are_marks_shorter(r, o, to, n);
    size_t head = marks ? rounds_mark_bytes(n) : 0;
    int finite;
    memset(data, 0, head);
    const size_t others = divide(r, o, to, n, marks ? data : NULL, &finite);
    const uint32_t bits = finite ? bits_of(r) : 32;
    const size_t row = drps_rowvalues_bytes(bits, r->dim);
    size_t sent = others;
    *tag_out = (marks ? DRPS_MESSAGE_COPIES : 0) | (bits == 16 ? DRPS_MESSAGE_16BIT : 0) |
               (bits == 8 ? DRPS_MESSAGE_8BIT : 0);
    if (o->has_ids) {
        const size_t fresh =
            drps_fresh_pack(s->fresh, s->chosen, s->order, &sent, row, data + head);
        if (fresh) *tag_out |= DRPS_MESSAGE_FRESH;
        head += fresh;
    }
    for (size_t i = 0; i < sent; i++)
        drps_rowvalues_write(bits, s->rounded + (size_t)s->order[i] * r->dim, r->dim,
                             data + head + i * row);
    rounds_count_sent(r, &s->sent, DRPS_TRAFFIC_FRESH, to, others - sent, 0);
    count_message(r, kind, to, n - (others - sent), sent, head, sent * row);
    return head + sent * row;
}

void drps_rounds_publish(struct drps_rounds *r)
{
    const struct rounds_open *now = r->server.now;
    const double threshold = drps_pull_threshold(r->o.pull);
    for (size_t i = 0; i < now->u.n; i++)
        if (now->published.slot[i] != DRPS_NOT_PUBLISHED)
            drps_published_step(drps_pull_published(r->o.pull), now->published.slot[i],
                                row_at(now, now->frames[i]), threshold);
}

/* ---- The worker ---- */

static int is_marked(const unsigned char *marks, size_t i)
{
    return marks[i / 8] >> i % 8 & 1;
}

/* Take the marks from the front. Returns how many of the rows are left out, or SIZE_MAX. */
static size_t read_marks(struct rounds_reader *reader, const void *data, size_t bytes, size_t rows)
{
    const size_t marks = rounds_mark_bytes(rows);
    size_t n = 0;
    if (bytes < marks) return SIZE_MAX;
    reader->copies = data;
    for (size_t i = 0; i < 8 * marks; i++) {
        n += (size_t)is_marked(reader->copies, i);
        if (i >= rows && is_marked(reader->copies, i)) return SIZE_MAX;
    }
    reader->head_bytes = marks;
    return n;
}

int drps_rounds_read(const struct drps_rounds *r, const void *data, size_t bytes, size_t rows,
                     uint32_t tag, struct rounds_reader *out)
{
    const uint32_t filtered = DRPS_MESSAGE_COPIES | DRPS_MESSAGE_16BIT | DRPS_MESSAGE_8BIT;
    size_t left_out = 0;
    *out = (struct rounds_reader){.bits = 32};
    if ((tag & filtered) && !r->worker.copies) return -1;
    if (tag & DRPS_MESSAGE_16BIT) out->bits = 16;
    if (tag & DRPS_MESSAGE_8BIT) out->bits = 8;
    if (tag & DRPS_MESSAGE_COPIES) left_out = read_marks(out, data, bytes, rows);
    if (left_out == SIZE_MAX) return -1;
    const size_t head = out->head_bytes;
    const int rc = drps_fresh_read(r->o.worker->model, (const char *)data + head, bytes - head,
                                   rows - left_out, drps_rowvalues_bytes(out->bits, r->dim),
                                   (tag & DRPS_MESSAGE_FRESH) != 0, &out->fresh);
    out->head_bytes += out->fresh.head_bytes;
    return rc;
}

int drps_rounds_next_row(const struct drps_rounds *r, struct rounds_reader *reader, size_t remote,
                         float *to)
{
    const size_t i = reader->row++;
    if (reader->copies && is_marked(reader->copies, i)) {
        const float *copy = drps_copies_at(r->worker.copies, remote);
        if (!copy) return -1;
        memcpy(to, copy, r->dim * sizeof(*to));
        return 0;
    }
    const unsigned char *value = drps_fresh_value(&reader->fresh);
    if (value) return drps_rowvalues_read(reader->bits, value, r->dim, to);
    drps_fresh_make(&reader->fresh, (char *)to);
    if (r->worker.copies) (void)drps_rowvalues_round(bits_of(r), to, r->dim);
    return 0;
}
