/* Samples go through a sort by user; each user's get their negatives and go to new spools, with the
 * places that they had in the order of all. */
#include "index/negatives/drps_negatives.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "index/negatives/draw.h"
#include "index/plan/drps_names.h"

/* Streams of random numbers that must not be the same. */
#define TRAIN_STREAM 0x6e6567u  /* "neg" */
#define TEST_STREAM 0x746e6567u /* "tneg" */

/* A record's lo: a sample of evaluation has its top bit; then its place in the order. */
#define IS_TEST (UINT64_C(1) << 63)

/* Shares of the memory: of the sort, and of the spool that it gets samples from; of one user's
 * choices; three eighths are of items. */
enum { SORT_SHARE = 4, USER_SHARE = 8 };

/* A user's choice. */
struct choice {
    uint64_t lo; /* as the record's */
    uint32_t item;
    float rating, weight;
};

/* The user whose choices come from the sort. */
struct user {
    uint32_t row;
    struct choice *choices; /* own */
    size_t n, cap, most;
    uint32_t *items, *trained;               /* own: [cap] different ones; those of training */
    uint64_t *items_before, *trained_before; /* own: [cap + 1] */
    struct chosen all, training;
    size_t trained_n; /* choices of training, an item as often as it is one */
};

struct drawing {
    const struct negatives_job *job;
    struct drps_extsort *sort;
    uint64_t *mass, *marks, mark; /* own: [items + 1], [items] */
    struct masses masses;
    struct user user;
    uint32_t *drawn, *ids; /* own: items, and ids of a sample */
    uint16_t *roles;       /* own */
    struct spool *train, *test;
    struct negatives_drawn *out;
    uint64_t at; /* samples that have come from a spool */
    uint64_t test_bit;
};

/* ---- From the spools to the sort ---- */

/* Finds user and item among a sample's entries. Returns 0 where training does not have one of
 * them. */
static int find_pair(const struct negatives_job *job, const struct spool_sample *s, uint32_t *user,
                     uint32_t *item)
{
    int found = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t row = job->map ? job->map[s->ids[i]] : s->ids[i];
        if (row == DRPS_NO_ROW) continue;
        if (row >= job->items.first && row - job->items.first < job->items.rows) {
            *item = row - (uint32_t)job->items.first;
            found |= 1;
        } else {
            *user = row;
            found |= 2;
        }
    }
    return found == 3;
}

static int sort_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct drawing *d = ctx;
    uint32_t user = 0, item = 0;
    const uint64_t place = d->at++;
    if (!find_pair(d->job, s, &user, &item)) {
        d->out->test_new++; /* training has all of its own */
        return 0;
    }
    if (!d->test_bit) d->mass[item + 1] += d->job->how.by_popularity ? 1 : 0;
    struct drps_sort_record record = {.hi = (uint64_t)user << 32 | item, .lo = d->test_bit | place};
    memcpy(&record.a, &s->label, sizeof(record.a));
    memcpy(&record.b, &s->weight, sizeof(record.b));
    return drps_extsort_add(d->sort, &record, err);
}

static int sort_spool(struct drawing *d, struct spool **spool, uint64_t test_bit,
                      struct drps_err *err)
{
    const struct spool_visitor visitor = {.visit = sort_sample, .ctx = d};
    d->at = 0;
    d->test_bit = test_bit;
    int rc = drps_spool_drain(*spool, d->job->memory_bytes / SORT_SHARE, &visitor, err);
    drps_spool_close(*spool);
    *spool = NULL;
    return rc;
}

/* Turns masses into the sums of those before. */
static void sum_masses(struct drawing *d)
{
    const uint32_t items = (uint32_t)d->job->items.rows;
    for (uint32_t i = 0; i < items; i++)
        d->mass[i + 1] = d->mass[i] + (d->job->how.by_popularity ? d->mass[i + 1] : 1);
    d->masses = (struct masses){.before = d->mass, .items = items};
}

/* ---- A user ---- */

static void user_free(struct user *u)
{
    free(u->choices);
    free(u->items);
    free(u->trained);
    free(u->items_before);
    free(u->trained_before);
}

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for negatives");
}

static int reserve_user(struct user *u, size_t n, struct drps_err *err)
{
    size_t caps[5] = {u->cap, u->cap, u->cap, u->cap, u->cap};
    if (drps_array_reserve(&u->choices, &caps[0], n, sizeof(*u->choices)) ||
        drps_array_reserve(&u->items, &caps[1], n, sizeof(*u->items)) ||
        drps_array_reserve(&u->trained, &caps[2], n, sizeof(*u->trained)) ||
        drps_array_reserve(&u->items_before, &caps[3], n + 1, sizeof(*u->items_before)) ||
        drps_array_reserve(&u->trained_before, &caps[4], n + 1, sizeof(*u->trained_before)))
        return no_memory(err);
    u->cap = n;
    return 0;
}

enum { CHOICE_BYTES = sizeof(struct choice) + 2 * (sizeof(uint32_t) + sizeof(uint64_t)) };

/* Refuses a user with more choices than fit. It counts all choices to the end, so that the limit
 * that is named is enough for every user. `row` has one choice more than fits. */
static int too_many(struct drawing *d, uint32_t row, struct drps_err *err)
{
    const struct negatives_job *job = d->job;
    const struct drps_sort_record *r;
    uint64_t n = d->user.most + 1, largest = n;
    int rc;
    while ((rc = drps_extsort_next(d->sort, &r, err)) > 0) {
        n = (uint32_t)(r->hi >> 32) == row ? n + 1 : 1;
        row = (uint32_t)(r->hi >> 32);
        if (n > largest) largest = n;
    }
    if (rc < 0) return rc;
    const double need = (double)(largest + 1) * USER_SHARE * CHOICE_BYTES;
    const double limit = need * (double)job->limit_bytes / (double)job->memory_bytes;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "a user has %" PRIu64 " choices, whose negatives do not fit the memory "
                        "limit: use a limit of %" PRIu64 " MiB",
                        largest, ((uint64_t)limit >> 20) + 1);
}

static int add_choice(struct drawing *d, const struct drps_sort_record *r, struct drps_err *err)
{
    struct user *u = &d->user;
    if (u->n == u->most) return too_many(d, u->row, err);
    if (u->n == u->cap) {
        const size_t more = u->cap ? 2 * u->cap : 256;
        int rc = reserve_user(u, more < u->most ? more : u->most, err);
        if (rc < 0) return rc;
    }
    struct choice *c = &u->choices[u->n++];
    *c = (struct choice){.lo = r->lo, .item = (uint32_t)r->hi};
    memcpy(&c->rating, &r->a, sizeof(c->rating));
    memcpy(&c->weight, &r->b, sizeof(c->weight));
    return 0;
}

/* Appends an item, unless it is the last one. */
static void append(const struct masses *m, struct chosen *c, uint32_t *items, uint64_t *before,
                   uint32_t item)
{
    if (c->n && items[c->n - 1] == item) return;
    items[c->n] = item;
    before[c->n + 1] = before[c->n] + (m->before[item + 1] - m->before[item]);
    c->n++;
}

/* Lists of what the user has chosen, which comes in the order of items. */
static void list_choices(struct drawing *d)
{
    struct user *u = &d->user;
    u->all = (struct chosen){.items = u->items, .before = u->items_before};
    u->training = (struct chosen){.items = u->trained, .before = u->trained_before};
    u->items_before[0] = u->trained_before[0] = 0;
    u->trained_n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const struct choice *c = &u->choices[i];
        append(&d->masses, &u->all, u->items, u->items_before, c->item);
        if (c->lo & IS_TEST) continue;
        u->trained_n++;
        append(&d->masses, &u->training, u->trained, u->trained_before, c->item);
    }
}

/* ---- From the sort to new spools ---- */

/* Returns what the negatives of a sample weigh together. */
static double weight_of_negatives(const struct drawing *d)
{
    const struct user *u = &d->user;
    if (d->job->how.weight > 0) return d->job->how.weight;
    return (double)draw_others(&d->masses, &u->training) / (double)u->trained_n;
}

/* Sets label and weight of what was drawn for a choice. A sample of evaluation keeps its weight:
 * users count by their choices there. */
static int weigh(const struct drawing *d, const struct choice *c, struct spool_sample *s,
                 struct drps_err *err)
{
    const double alpha = d->job->how.alpha;
    s->label = 1;
    s->weight = c->weight;
    if (!d->job->confidence) return 0;
    const double negatives = weight_of_negatives(d), confidence = 1 + alpha * (double)c->rating;
    if (!(c->lo & IS_TEST)) d->out->confidence += confidence;
    s->label = (float)(confidence / negatives);
    if (!(c->lo & IS_TEST) && d->job->how.weight == 0) s->weight *= (float)negatives;
    if (isfinite(s->label) && isfinite(s->weight)) return 0;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "a rating of %g: its confidence, 1 + %g times that, is too large: "
                        "choose a smaller alpha",
                        (double)c->rating, alpha);
}

/* Writes the sample with what is drawn as its number `number` of `of`. */
static int add_drawn(struct drawing *d, const struct choice *c, uint64_t number, uint64_t of,
                     uint64_t stream, size_t most, struct drps_err *err)
{
    const int test = (c->lo & IS_TEST) != 0;
    const uint32_t first = (uint32_t)d->job->items.first;
    const size_t n = draw_items(&d->masses, test ? &d->user.all : &d->user.training,
                                drps_mix64(drps_mix64(d->job->seed ^ stream) ^ number), most,
                                d->marks, &d->mark, d->drawn);
    if (!n) {
        *(test ? &d->out->test_few : &d->out->few) += 1;
        return 0;
    }
    d->ids[DRPS_ROLE_USER] = d->user.row;
    d->ids[DRPS_ROLE_POSITIVE] = first + c->item;
    for (size_t i = 0; i < n; i++)
        d->ids[DRPS_ROLE_NEGATIVE + i] = first + d->drawn[i];
    struct spool_sample s = {.order = (uint64_t)(((__uint128_t)number << 64) / of),
                             .n = (uint32_t)(DRPS_ROLE_NEGATIVE + n),
                             .ids = d->ids,
                             .fields = d->roles};
    int rc = weigh(d, c, &s, err);
    if (rc < 0) return rc;
    *(test ? &d->out->test_samples : &d->out->samples) += 1;
    *(test ? &d->out->test_nnz : &d->out->nnz) += s.n;
    return drps_spool_add(test ? d->test : d->train, &s, err);
}

/* Adds the user's choices; a training sample is in each of `draws` passes. */
static int add_choices(struct drawing *d, struct drps_err *err)
{
    const struct negatives_job *job = d->job;
    const uint64_t draws = job->how.draws;
    int rc = 0;
    list_choices(d);
    for (size_t i = 0; i < d->user.n && rc == 0; i++) {
        const struct choice *c = &d->user.choices[i];
        const uint64_t place = c->lo & ~IS_TEST;
        if (c->lo & IS_TEST)
            rc = add_drawn(d, c, place, job->test_samples, TEST_STREAM, job->how.test, err);
        for (uint64_t k = 0; k < draws && rc == 0 && !(c->lo & IS_TEST); k++)
            rc = add_drawn(d, c, k * job->samples + place, draws * job->samples, TRAIN_STREAM,
                           job->how.each, err);
    }
    d->user.n = 0;
    return rc;
}

static int draw_all(struct drawing *d, struct drps_err *err)
{
    const struct drps_sort_record *r;
    int rc = drps_extsort_finish(d->sort, err);
    while (rc == 0 && (rc = drps_extsort_next(d->sort, &r, err)) > 0) {
        const uint32_t row = (uint32_t)(r->hi >> 32);
        rc = d->user.n && d->user.row != row ? add_choices(d, err) : 0;
        d->user.row = row;
        if (rc == 0) rc = add_choice(d, r, err);
    }
    return rc == 0 ? add_choices(d, err) : rc;
}

/* ---- All ---- */

static int check_memory(const struct negatives_job *job, struct drps_err *err)
{
    const uint64_t need = (job->items.rows + 1) * 2 * sizeof(uint64_t);
    const uint64_t room = job->memory_bytes / 8 * 3;
    char text[32];
    if (need <= room) return 0;
    const uint64_t enough =
        (uint64_t)((double)job->limit_bytes * (double)need / (double)room) + need;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "negatives of %" PRIu64
                        " items do not fit the memory limit: use a limit of %s",
                        job->items.rows, drps_size_format(enough, text, sizeof(text)));
}

static int allocate(struct drawing *d, struct drps_err *err)
{
    const struct negatives_job *job = d->job;
    const uint32_t drawn = job->how.each > job->how.test ? job->how.each : job->how.test;
    const size_t roles = (size_t)DRPS_ROLE_NEGATIVE + drawn;
    d->mass = calloc(job->items.rows + 1, sizeof(*d->mass));
    d->marks = calloc(job->items.rows + 1, sizeof(*d->marks));
    d->drawn = drps_array_new(drawn, sizeof(*d->drawn));
    d->ids = drps_array_new(roles, sizeof(*d->ids));
    d->roles = drps_array_new(roles, sizeof(*d->roles));
    if (!d->mass || !d->marks || !d->drawn || !d->ids || !d->roles) return no_memory(err);
    for (size_t i = 0; i < roles; i++)
        d->roles[i] = (uint16_t)i;
    d->user.most = (size_t)(job->memory_bytes / USER_SHARE / CHOICE_BYTES);
    return 0;
}

static int open_spools(struct drawing *d, struct drps_err *err)
{
    const struct negatives_job *job = d->job;
    int rc = drps_spool_open(job->io, job->dir, "train-drawn", SPOOL_BUCKETS,
                             job->limit_bytes / SPOOL_TRAIN_SHARE, &d->train, err);
    if (rc < 0) return rc;
    return drps_spool_open(job->io, job->dir, "test-drawn", SPOOL_BUCKETS,
                           job->limit_bytes / SPOOL_TEST_SHARE, &d->test, err);
}

static int run(struct drawing *d, struct spool **train, struct spool **test, struct drps_err *err)
{
    const struct negatives_job *job = d->job;
    int rc = check_memory(job, err);
    if (rc == 0) rc = allocate(d, err);
    if (rc == 0)
        rc = drps_extsort_open(job->io, job->dir, "choices", job->memory_bytes / SORT_SHARE,
                               &d->sort, err);
    if (rc == 0) rc = sort_spool(d, train, 0, err);
    if (rc == 0) rc = sort_spool(d, test, IS_TEST, err);
    if (rc < 0) return rc;
    sum_masses(d);
    rc = open_spools(d, err);
    if (rc == 0) rc = draw_all(d, err);
    if (rc == 0) rc = drps_spool_finish(d->train, err);
    return rc == 0 ? drps_spool_finish(d->test, err) : rc;
}

int drps_negatives_draw(const struct negatives_job *job, struct spool **train, struct spool **test,
                        struct negatives_drawn *out, struct drps_err *err)
{
    struct drawing d = {.job = job, .out = out};
    memset(out, 0, sizeof(*out));
    int rc = run(&d, train, test, err);
    drps_extsort_close(d.sort);
    user_free(&d.user);
    free(d.mass);
    free(d.marks);
    free(d.drawn);
    free(d.ids);
    free(d.roles);
    if (rc < 0) {
        drps_spool_close(d.train);
        drps_spool_close(d.test);
        return rc;
    }
    *train = d.train; /* moved */
    *test = d.test;
    return 0;
}
