/* The filters of a worker's pushes: slots, and the records that say which row has which. */
#include "engine/cluster/filters/drps_push.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "engine/cluster/filters/drps_held.h"
#include "engine/cluster/filters/drps_slot_reader.h"

enum { ARRAYS = 4, MESSAGE_MORE = 256 };

struct drps_push {
    struct drps_push_options options;
    struct drps_push_counts counts;
    struct drps_push_shape most;
    uint64_t slots, seed;
    uint64_t t;             /* training batches so far, of all epochs: this one is number t */
    uint64_t batches, last; /* of an epoch; the run's last epoch */
    int own;                /* 1: slots are the rows' own */
    struct drps_slot_reader *reader;       /* own */
    float *kept;                           /* own: [slots][dim] */
    const struct drps_residual_rows *rows; /* of the batch that other servers have */
    uint8_t *whole;                        /* own: [rows] 1: it is sent whole */
    size_t own_first, own_n;               /* rows of the batch that are none of these */
    float *rest, *values;                  /* own: [rows][dim] of a message */
    uint32_t *room;                        /* own: [rows * (dim + 1)] */
};

/* ---- Sizes ---- */

struct drps_push_shape drps_push_most(const struct drps_plan_info *info, int touches)
{
    return (struct drps_push_shape){
        .rows = info->max_batch_rows, .dim = info->dim, .touches = touches};
}

/* Messages to all servers are of the rows of one batch; each has a head, and lists that may end
 * with a part of a block. */
uint64_t drps_push_messages_bytes(const struct drps_plan_info *info, int touches)
{
    const struct drps_push_shape most = drps_push_most(info, touches);
    const uint64_t bound = drps_push_bound(&most),
                   more = info->ranks.count * (uint64_t)MESSAGE_MORE;
    return bound > UINT64_MAX - more ? UINT64_MAX : bound + more;
}

/* A message is there twice: on its way out, and as it came in. */
uint64_t drps_push_memory(const struct drps_plan_info *info, int touches)
{
    const struct drps_push_shape most = drps_push_most(info, touches);
    const uint64_t messages = drps_push_messages_bytes(info, touches);
    if (messages > UINT64_MAX / 64) return UINT64_MAX;
    const uint64_t row = info->dim * sizeof(float);
    const uint64_t arrays = most.rows * (ARRAYS * row + sizeof(uint32_t) + 1);
    return info->ranks.residual_slots * row + arrays + 2 * messages +
           drps_push_reader_memory(&most) + drps_slot_reader_memory(info);
}

/* ---- Opening ---- */

static int allocate(struct drps_push *p, struct drps_err *err)
{
    const size_t rows = p->most.rows, values = rows * p->most.dim;
    p->rest = drps_array_new(values, sizeof(*p->rest));
    p->values = drps_array_new(values, sizeof(*p->values));
    p->room = drps_array_new(values + rows, sizeof(*p->room));
    p->whole = drps_array_new(rows, sizeof(*p->whole));
    p->kept = calloc(p->slots, p->most.dim * sizeof(*p->kept));
    if (p->rest && p->values && p->room && p->whole && p->kept) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for what pushes hold back");
}

int drps_push_needs_own_slots(const struct drps_push_options *o)
{
    return o->flush > 1 || (o->whole_bits && o->whole_bits < 32);
}

int drps_push_open(const struct drps_push_job *job, struct drps_push **push_out,
                   struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    *push_out = NULL;
    if (!info->ranks.residual_slots ||
        (drps_push_needs_own_slots(job->options) && !info->ranks.own_slots))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no residual slots, in which what is not sent is kept, or rows "
                            "have none of their own: make a plan with them",
                            job->plan->dir);
    const struct drps_slot_range range = {job->first, job->epochs};
    struct drps_push *p = calloc(1, sizeof(*p));
    if (!p) return drps_err_set(err, -ENOMEM, "no memory for filters");
    p->options = *job->options;
    p->most = drps_push_most(info, job->touches);
    p->slots = info->ranks.residual_slots;
    p->t = (job->epoch - 1) * info->batches +
           (job->first < info->batches ? job->first : info->batches);
    p->batches = info->batches;
    p->last = job->epoch + job->epochs - 1;
    p->own = info->ranks.own_slots;
    p->seed = drps_mix64(job->seed ^ drps_mix64(info->ranks.rank));
    int rc = allocate(p, err);
    if (rc == 0) rc = drps_slot_reader_open(job->plan, &range, &p->reader, err);
    if (rc < 0) {
        drps_push_close(p);
        return rc;
    }
    *push_out = p;
    return 0;
}

void drps_push_close(struct drps_push *p)
{
    if (!p) return;
    drps_slot_reader_close(p->reader);
    free(p->kept);
    free(p->whole);
    free(p->rest);
    free(p->values);
    free(p->room);
    free(p);
}

/* ---- A batch ---- */

/* Whether all that is kept is sent in the epoch of batch t. */
static int flushes(const struct drps_push *p)
{
    const uint64_t epoch = (p->t - 1) / p->batches + 1, every = p->options.flush;
    return every <= 1 || epoch == p->last || epoch % every == 0;
}

/* Which rows of the batch are whole: in other epochs those without a slot. */
static void find_whole(struct drps_push *p)
{
    const struct drps_residual_rows *r = p->rows;
    const int all = flushes(p);
    for (size_t i = 0; i < r->n; i++)
        p->whole[i] = all ? r->whole[i] : r->slot[i] == DRPS_NO_SLOT;
}

static float *slot_of(const struct drps_push *p, size_t row)
{
    return p->kept + (size_t)p->rows->slot[row] * p->most.dim;
}

/* Add to the gradient what was kept of rows that are whole, or that are not. */
static void add_kept(struct drps_push *p, float *grads, int whole)
{
    const uint32_t dim = p->most.dim;
    for (size_t i = 0; i < p->rows->n; i++) {
        if (p->whole[i] != whole || p->rows->slot[i] == DRPS_NO_SLOT) continue;
        float *g = grads + (i < p->own_first ? i : i + p->own_n) * dim, *kept = slot_of(p, i);
        for (uint32_t k = 0; k < dim; k++)
            g[k] += kept[k];
        if (whole) memset(kept, 0, dim * sizeof(*kept));
    }
}

/* The next batch, of so many rows. */
static int next_batch(struct drps_push *p, size_t rows, size_t own_first, size_t own_n,
                      struct drps_err *err)
{
    p->own_first = own_first;
    p->own_n = own_n;
    p->t++;
    int rc = drps_slot_reader_next(p->reader, rows - own_n, &p->rows, err);
    if (rc == 0) find_whole(p);
    if (rc == 0) return 0;
    return drps_err_context(err, "residuals of training batch %llu", (unsigned long long)p->t);
}

/* Rows that are sent whole come first: others of the batch may get their slots. */
int drps_push_begin(struct drps_push *p, float *grads, size_t rows, size_t own_first, size_t own_n,
                    struct drps_err *err)
{
    int rc = next_batch(p, rows, own_first, own_n, err);
    if (rc < 0) return rc;
    add_kept(p, grads, 1);
    add_kept(p, grads, 0);
    return 0;
}

/* ---- Messages ---- */

static struct drps_push_choice choice(const struct drps_push *p, uint32_t server)
{
    const struct drps_push_options *o = &p->options;
    return (struct drps_push_choice){.threshold = drps_push_threshold(o, p->t),
                                     .chance = o->chance,
                                     .top = o->top,
                                     .seed = drps_rng_at(p->seed ^ drps_mix64(server), p->t)};
}

/* Rows that are whole keep what is rounded away, if anything is and their slots are their own. */
static void keep(struct drps_push *p, size_t first, size_t n)
{
    const size_t row = p->most.dim;
    const int rounds = p->own && p->options.whole_bits && p->options.whole_bits < 32;
    const float *rest = p->rest;
    for (int whole = 0; whole <= rounds; whole++)
        for (size_t i = first; i < first + n; i++) {
            if (p->whole[i] != whole) continue;
            if (p->rows->slot[i] != DRPS_NO_SLOT) memcpy(slot_of(p, i), rest, row * sizeof(*rest));
            rest += row;
        }
}

size_t drps_push_write(struct drps_push *p, uint32_t server, size_t first, size_t n,
                       const float *grads, const uint32_t *touches, void *out)
{
    const size_t remote = first < p->own_first ? first : first - p->own_n;
    const struct drps_push_shape shape = {n, p->most.dim, p->most.touches};
    const struct drps_push_choice chosen = choice(p, server);
    const struct drps_push_bits bits = {p->options.bits ? p->options.bits : 32,
                                        p->options.whole_bits ? p->options.whole_bits : 32};
    const struct drps_push_gradient g = {.grads = grads + first * shape.dim,
                                         .touches = touches ? touches + first : NULL,
                                         .whole = p->whole + remote,
                                         .rest = p->rest,
                                         .room = p->room,
                                         .values = p->values};
    const size_t bytes = drps_push_encode(&shape, &chosen, &bits, &g, out, &p->counts);
    keep(p, remote, n);
    p->counts.plain_bytes +=
        n * (shape.dim * sizeof(float) + (shape.touches ? sizeof(uint32_t) : 0));
    p->counts.sent_bytes += bytes;
    return bytes;
}

/* ---- Batches of which another worker has the gradient ---- */

int drps_push_skip(struct drps_push *p, size_t rows, size_t own_first, size_t own_n,
                   struct drps_err *err)
{
    return next_batch(p, rows, own_first, own_n, err);
}

static int is_zero(const float *values, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && !(fabsf(values[i]) > 0))
        i++;
    return i == n;
}

size_t drps_push_write_held(struct drps_push *p, size_t first, size_t n, void *out)
{
    const size_t remote = first < p->own_first ? first : first - p->own_n;
    const uint32_t dim = p->most.dim;
    struct drps_held held = {.rows = p->room, .values = p->values};
    for (size_t i = 0; i < n; i++) {
        const size_t row = remote + i;
        if (!p->whole[row] || p->rows->slot[row] == DRPS_NO_SLOT) continue;
        float *kept = slot_of(p, row);
        if (is_zero(kept, dim)) continue;
        memcpy(held.values + held.n * dim, kept, dim * sizeof(*kept));
        memset(kept, 0, dim * sizeof(*kept));
        held.rows[held.n++] = (uint32_t)i;
    }
    const size_t bytes = drps_held_encode(&held, dim, out);
    p->counts.whole_bytes += held.n * dim * sizeof(float);
    p->counts.sent_bytes += bytes;
    return bytes;
}

void drps_push_count_whole(struct drps_push *p, uint64_t bytes)
{
    p->counts.plain_bytes += bytes;
    p->counts.sent_bytes += bytes;
    p->counts.whole_bytes += bytes;
}

/* ---- What is kept ---- */

float *drps_push_slots(struct drps_push *p)
{
    return p->kept;
}

void drps_push_kept(const struct drps_push *p, struct drps_push_kept *out)
{
    const uint32_t dim = p->most.dim;
    *out = (struct drps_push_kept){0};
    for (size_t s = 0; s < p->slots; s++) {
        const float *kept = p->kept + s * dim;
        out->rows += !is_zero(kept, dim);
        for (uint32_t k = 0; k < dim; k++)
            out->sum += fabs((double)kept[k]);
    }
}

const struct drps_push_counts *drps_push_counts(const struct drps_push *p)
{
    return &p->counts;
}
