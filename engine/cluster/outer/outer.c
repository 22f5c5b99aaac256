/*
 * Vectors of layers in a round: they are sent from where the gradient has left them, and the
 * products of all ranks are added in the order of ranks, layer by layer.
 *
 * A team of threads shares the products out by rank: each member computes those of one of the next
 * few ranks, then all add these, each some of the floats. So it does not matter how many there are.
 */
#include "engine/cluster/outer/drps_outer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/outer/message.h"
#include "engine/model/layers/drps_layers_pass.h"
#include "net/gather/drps_allgather.h"

struct drps_outer {
    struct drps_outer_job job;
    const struct drps_layers *layers; /* of the worker's model */
    uint32_t rank, ranks;
    struct drps_layers_vectors keeps; /* in `kept` */
    float *kept;                      /* own */
    uint32_t *chunks;                 /* own: [samples] */
    unsigned char *all;               /* own: [ranks][most] messages */
    size_t most;
    size_t *bytes;                           /* own: [ranks] */
    struct outer_message *messages;          /* own: [ranks], which point into `all` */
    float *sum;                              /* own: of W of a layer, over ranks */
    unsigned members;                        /* that compute products at a time */
    float *products[DRPS_TRAIN_THREADS_MAX]; /* own: [members] of W of a layer: of a rank */
    float *of_thread;                        /* own: of W: of one thread of that rank */
    float *rooms[DRPS_TRAIN_THREADS_MAX];    /* own: [members] for vectors with their zeros */
    struct drps_outer_bytes traffic;
};

/* ---- Sizes ---- */

/* The most of the layers: floats of W, and of a batch's vectors. */
struct most {
    size_t floats, vectors;
};

static struct most most_of(const struct drps_outer_choice *c, uint64_t samples)
{
    struct most most = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        const struct drps_outer_layer *y = &c->layers[i];
        const size_t floats = (size_t)y->w * y->N, vectors = samples * ((size_t)y->w + y->N);
        if (floats > most.floats) most.floats = floats;
        if (vectors > most.vectors) most.vectors = vectors;
    }
    return most;
}

/* More members than others would have no products to compute. */
static unsigned members_of(uint32_t ranks, unsigned members)
{
    return members < ranks - 1 ? members : ranks - 1;
}

/* Bytes of a rank's place among the messages, which begins where floats may lie. */
static uint64_t place_bytes(const struct drps_outer_choice *c, uint64_t samples)
{
    return (outer_message_most(c, samples) + 63) / 64 * 64;
}

/* Messages under way: of each other rank one of at most DRPS_NET_GROUP_BYTES, and one to it. */
uint64_t drps_outer_memory(const struct drps_outer_choice *c, uint32_t ranks, uint64_t samples,
                           unsigned members)
{
    const struct most most = most_of(c, samples);
    const uint64_t place = place_bytes(c, samples), working = members_of(ranks, members);
    const uint64_t message = place < DRPS_NET_GROUP_BYTES ? place : DRPS_NET_GROUP_BYTES;
    const uint64_t floats = (working + 2) * most.floats + working * most.vectors;
    if (!c->n) return 0;
    return place + samples * sizeof(uint32_t) + ranks * (place + sizeof(struct outer_message)) +
           floats * sizeof(float) + 2 * (ranks - 1) * message;
}

/* ---- Opening ---- */

/* Divides `kept` among the layers. */
static void lay_out(struct drps_outer *f)
{
    const struct drps_outer_choice *c = &f->job.choice;
    float *at = f->kept;
    for (uint32_t i = 0; i < c->n; i++) {
        f->keeps.inputs[c->layers[i].layer] = at;
        at += f->job.samples * c->layers[i].w;
        f->keeps.deltas[c->layers[i].layer] = at;
        at += f->job.samples * c->layers[i].N;
    }
}

static int allocate(struct drps_outer *f)
{
    const struct drps_outer_job *job = &f->job;
    const struct most most = most_of(&job->choice, job->samples);
    int missing = 0;
    f->kept = drps_array_new(f->most, 1);
    f->chunks = drps_array_new(job->samples, sizeof(*f->chunks));
    f->all = drps_array_new(f->ranks, f->most);
    f->bytes = drps_array_new(f->ranks, sizeof(*f->bytes));
    f->messages = drps_array_new(f->ranks, sizeof(*f->messages));
    f->sum = drps_array_new(most.floats, sizeof(*f->sum));
    f->of_thread = drps_array_new(most.floats, sizeof(*f->of_thread));
    for (unsigned k = 0; k < f->members; k++) {
        f->products[k] = drps_array_new(most.floats, sizeof(float));
        f->rooms[k] = drps_array_new(most.vectors, sizeof(float));
        missing |= !f->products[k] || !f->rooms[k];
    }
    return !missing && f->kept && f->chunks && f->all && f->bytes && f->messages && f->sum &&
           f->of_thread;
}

int drps_outer_open(const struct drps_outer_job *job, struct drps_outer **outer_out,
                    struct drps_err *err)
{
    *outer_out = NULL;
    struct drps_outer *f = calloc(1, sizeof(*f));
    if (!f) return drps_err_set(err, -ENOMEM, "no memory for vectors of layers");
    f->job = *job;
    f->layers = &job->worker->model->layers;
    f->rank = drps_net_rank(job->net);
    f->ranks = drps_net_count(job->net);
    f->most = (size_t)place_bytes(&job->choice, job->samples);
    f->members = members_of(f->ranks, job->worker->size.members);
    int rc = 0;
    if (job->samples > OUTER_SAMPLES_MOST)
        rc =
            drps_err_set(err, -EINVAL, "vectors of %llu samples", (unsigned long long)job->samples);
    else if (!allocate(f))
        rc = drps_err_set(err, -ENOMEM, "no memory for vectors of layers: %llu bytes",
                          (unsigned long long)drps_outer_memory(&job->choice, f->ranks,
                                                                job->samples, f->members));
    if (rc < 0) {
        drps_outer_close(f);
        return rc;
    }
    lay_out(f);
    *outer_out = f;
    return 0;
}

void drps_outer_close(struct drps_outer *f)
{
    if (!f) return;
    for (unsigned k = 0; k < f->members; k++) {
        free(f->products[k]);
        free(f->rooms[k]);
    }
    free(f->kept);
    free(f->chunks);
    free(f->all);
    free(f->bytes);
    free(f->messages);
    free(f->sum);
    free(f->of_thread);
    free(f);
}

const struct drps_layers_vectors *drps_outer_keeps(const struct drps_outer *f)
{
    return &f->keeps;
}

struct drps_outer_bytes drps_outer_bytes(const struct drps_outer *f)
{
    return f->traffic;
}

/* ---- Messages ---- */

/* Fills in the chunks of the last gradient: of each of the worker's members those of its share.
 * Returns how many. */
static uint32_t list_chunks(struct drps_outer *f, const struct drps_batch *b)
{
    uint32_t n = 0;
    for (unsigned k = 0; k < f->job.worker->size.members; k++) {
        size_t first, last;
        drps_worker_share(f->job.worker, k, &first, &last);
        for (size_t s = first, end; s < last; s = end) {
            end = drps_layers_end(f->layers, b, s, last);
            f->chunks[n++] = (uint32_t)(end - s) | (s == first ? OUTER_BEGINS : 0);
        }
    }
    return n;
}

/* Writes this rank's message to its place. */
static void write_own(struct drps_outer *f)
{
    const struct drps_outer_choice *c = &f->job.choice;
    const struct drps_batch *b = f->job.worker->batch;
    struct outer_message m = {.samples = (uint32_t)b->samples, .chunks = f->chunks};
    m.chunks_n = list_chunks(f, b);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct drps_outer_layer *y = &c->layers[i];
        m.inputs[i] = (struct outer_matrix){b->samples * y->w, NULL, f->keeps.inputs[y->layer]};
        m.deltas[i] = (struct outer_matrix){b->samples * y->N, NULL, f->keeps.deltas[y->layer]};
    }
    f->bytes[f->rank] = outer_message_write(c, &m, f->all + f->rank * f->most);
}

static int read_all(struct drps_outer *f, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t r = 0; r < f->ranks && rc == 0; r++) {
        rc = outer_message_read(&f->job.choice, f->job.samples, f->all + r * f->most, f->bytes[r],
                                &f->messages[r], err);
        if (rc < 0) return drps_err_context(err, "rank %u", r);
        if (r != f->rank) f->traffic.received += f->bytes[r];
    }
    return rc;
}

int drps_outer_exchange(struct drps_outer *f, uint64_t round, struct drps_err *err)
{
    const struct drps_net_allgather all = {f->all, f->bytes, f->most, round};
    write_own(f);
    int rc = drps_net_allgather(f->job.net, &all, f->job.wait_ms, err);
    if (rc == 0) f->traffic.each += f->bytes[f->rank];
    if (rc == 0) rc = read_all(f, err);
    return rc < 0 ? drps_err_context(err, "vectors of layers") : 0;
}

/* ---- Products ---- */

static void add_floats(size_t n, float *restrict sum, const float *restrict more)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += more[i];
}

/* A rank's gradient of W of layer i, as its worker has made it: each thread's, then their sum in
 * the order of threads. `room` is of the vectors; of_thread of W. */
static void make_product(const struct drps_outer *f, const struct outer_message *m, uint32_t i,
                         float *product, float *of_thread, float *room)
{
    const struct drps_outer_layer *y = &f->job.choice.layers[i];
    const size_t w = y->w, N = y->N;
    const float *inputs = outer_matrix_floats(&m->inputs[i], room);
    const float *deltas = outer_matrix_floats(&m->deltas[i], room + m->inputs[i].n);
    float *to = product;
    for (uint32_t k = 0; k < m->chunks_n; k++) {
        const size_t n = m->chunks[k] & ~OUTER_BEGINS;
        if (n != m->chunks[k]) { /* a thread begins */
            if (to == of_thread) add_floats(w * N, product, of_thread);
            to = k ? of_thread : product;
            memset(to, 0, w * N * sizeof(*to));
        }
        drps_layers_add_products(f->layers, y->layer, n, inputs, deltas, to);
        inputs += n * w;
        deltas += n * N;
    }
    if (to == of_thread) add_floats(w * N, product, of_thread);
}

/* The next ranks whose gradients are added: all that have samples, this one too, with no more
 * others than members. */
struct group {
    uint32_t first, last; /* ranks */
};

static int is_other(const struct drps_outer *f, uint32_t r)
{
    return r != f->rank && f->messages[r].samples;
}

static struct group next_group(const struct drps_outer *f, uint32_t first)
{
    struct group g = {first, first};
    unsigned others = 0;
    while (g.last < f->ranks && others + (unsigned)is_other(f, g.last) <= f->members)
        others += (unsigned)is_other(f, g.last++);
    return g;
}

/* A member computes the product of the group's other rank of its number. */
static void make_own(struct drps_outer *f, unsigned member, struct group g, uint32_t i)
{
    unsigned number = 0;
    for (uint32_t r = g.first; r < g.last; r++)
        if (is_other(f, r) && number++ == member)
            make_product(f, &f->messages[r], i, f->products[member],
                         member ? f->job.worker->grads[member] : f->of_thread, f->rooms[member]);
}

/* The k-th of n nearly equal parts of 0 .. count. */
static size_t part(size_t count, unsigned k, unsigned n)
{
    return count / n * k + count % n * k / n;
}

/* Adds the floats [first, first + n) of the group's gradients to their sum, in the order of ranks.
 */
static void add_group(struct drps_outer *f, struct group g, const float *own, size_t first,
                      size_t n)
{
    unsigned number = 0;
    for (uint32_t r = g.first; r < g.last; r++) {
        if (r == f->rank)
            add_floats(n, f->sum + first, own + first);
        else if (is_other(f, r))
            add_floats(n, f->sum + first, f->products[number++] + first);
    }
}

static void add_layer(struct drps_outer *f, unsigned member, uint32_t i)
{
    const struct drps_outer_layer *y = &f->job.choice.layers[i];
    const unsigned members = f->job.worker->size.members;
    const size_t floats = (size_t)y->w * y->N, first = part(floats, member, members);
    const size_t n = part(floats, member + 1, members) - first;
    float *own = f->job.worker->grads[0] + y->first;
    memset(f->sum + first, 0, n * sizeof(*f->sum));
    for (struct group g = next_group(f, 0); g.first < f->ranks; g = next_group(f, g.last)) {
        make_own(f, member, g, i);
        drps_team_barrier(f->job.worker->team);
        add_group(f, g, own, first, n);
        drps_team_barrier(f->job.worker->team);
    }
    memcpy(own + first, f->sum + first, n * sizeof(*own));
    drps_team_barrier(f->job.worker->team); /* of the next layer's sums others have other parts */
}

static void add_all(void *ctx, unsigned member)
{
    struct drps_outer *f = ctx;
    for (uint32_t i = 0; i < f->job.choice.n; i++)
        add_layer(f, member, i);
}

void drps_outer_add(struct drps_outer *f)
{
    drps_team_run(f->job.worker->team, add_all, f);
}
