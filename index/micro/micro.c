/*
 * Micro order (drps_micro.h) in five sorts of samples: by number, so that what several walks have
 * found of a sample comes together; by the first row, for clusters; by the second one, for clusters
 * of these; by the third one, for groups; and by number again, as the samples themselves lie.
 */
#include "index/micro/drps_micro.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_extsort.h"
#include "base/drps_rng.h"

/* Streams of random numbers that must not be the same. */
#define ROW_STREAM 0x6d6963726f2d726fu    /* "micro-ro" */
#define SAMPLE_STREAM 0x6d6963726f2d7361u /* "micro-sa" */
#define GROUP_STREAM 0x6d6963726f2d6772u  /* "micro-gr" */

enum { SORTS = 2, REPORT_EVERY = 1 << 14 };
#define NONE UINT32_MAX /* no row */

/* ---- Hashes of rows ---- */

/* Returns the place of a row in a random order of all: one to one. */
static uint32_t hash_row(uint64_t seed, uint32_t row)
{
    uint32_t x = row ^ (uint32_t)drps_rng_at(seed ^ ROW_STREAM, 0);
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* The rare rows of a sample, then of its clusters: hashes by class of uses; NONE: it has none. */
struct rare {
    uint32_t row[MICRO_CLASSES];
};
static const struct rare no_rare = {{NONE, NONE, NONE}};

/* Returns the class of a row with so many uses, from 2 to MICRO_MOST. */
static unsigned class_of(unsigned uses)
{
    return uses <= MICRO_SCARCE ? 0 : uses <= MICRO_SELDOM ? 1 : 2;
}

static void take_first(uint32_t *first, uint32_t hash)
{
    if (hash < *first) *first = hash;
}

static uint64_t pack(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* ---- Walks over samples: uses of rows, then what is rare ---- */

struct walking {
    const struct micro_job *job;
    uint8_t *uses; /* own: [rows] of those from `first` on, up to MICRO_MOST + 1 */
    uint64_t first, rows;
    struct drps_extsort *found; /* borrowed: of each sample, its rare rows among these */
    uint64_t number;            /* of the sample at hand */
};

static int tell(struct walking *w, struct drps_err *err)
{
    return ++w->number % REPORT_EVERY ? 0 : w->job->turn(w->job->turn_ctx, w->number, err);
}

/* Returns where the uses of entry i's row are counted; NULL if another walk counts them. */
static uint8_t *uses_of(const struct walking *w, const struct spool_sample *s, uint32_t i,
                        uint32_t *row_out)
{
    *row_out = w->job->map ? w->job->map[s->ids[i]] : s->ids[i];
    return *row_out >= w->first && *row_out - w->first < w->rows ? &w->uses[*row_out - w->first]
                                                                 : NULL;
}

static int count_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct walking *w = ctx;
    uint32_t row;
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t *uses = uses_of(w, s, i, &row);
        if (uses && *uses <= MICRO_MOST) ++*uses;
    }
    return tell(w, err);
}

static int find_rare(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct walking *w = ctx;
    struct rare rare = no_rare;
    uint32_t row;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint8_t *uses = uses_of(w, s, i, &row);
        if (!uses || *uses < 2 || *uses > MICRO_MOST) continue;
        take_first(&rare.row[class_of(*uses)], hash_row(w->job->seed, row));
    }
    const struct drps_sort_record r = {
        .hi = w->number, .lo = pack(rare.row[0], rare.row[1]), .a = rare.row[2]};
    int rc = drps_extsort_add(w->found, &r, err);
    return rc < 0 ? rc : tell(w, err);
}

static int walk(struct walking *w, struct spool *from,
                int (*visit)(void *, struct spool_sample *, struct drps_err *),
                struct drps_err *err)
{
    const struct spool_visitor v = {.visit = visit, .ctx = w};
    w->number = 0;
    return drps_spool_walk(from, &v, err);
}

/* Fill a sort with the rare rows of each sample, a record for each part of the rows. */
static int find_all(const struct micro_job *job, struct spool *from, struct drps_extsort *found,
                    struct drps_err *err)
{
    const uint64_t room = job->memory_bytes / SORTS;
    struct walking w = {.job = job, .found = found};
    int rc = 0;
    w.rows = job->rows < room ? job->rows : room;
    w.uses = malloc((size_t)w.rows + 1);
    if (!w.uses) return drps_err_set(err, -ENOMEM, "no memory to count the uses of rows");
    for (; w.first < job->rows && rc == 0; w.first += w.rows) {
        memset(w.uses, 0, (size_t)w.rows);
        rc = walk(&w, from, count_sample, err);
        if (rc == 0) rc = walk(&w, from, find_rare, err);
    }
    free(w.uses);
    return rc;
}

/* ---- From sort to sort ---- */

struct passing {
    const struct micro_job *job;
    struct drps_extsort *to; /* borrowed */
    uint64_t n;              /* records that have come */
    uint64_t number;         /* of the sample whose rows are gathered */
    struct rare rare;        /* of it, or of the first sample of the cluster */
};

static int add_gathered(struct passing *p, struct drps_err *err)
{
    const uint64_t random = drps_rng_at(p->job->seed ^ SAMPLE_STREAM, p->number);
    const struct drps_sort_record r = {.hi = pack(p->rare.row[0], p->rare.row[1]),
                                       .lo = pack(p->rare.row[2], (uint32_t)random),
                                       .a = (uint32_t)(p->number >> 32),
                                       .b = (uint32_t)p->number};
    return drps_extsort_add(p->to, &r, err);
}

/* Records of one sample follow on each other: gathers their rows. */
static int gather(struct passing *p, const struct drps_sort_record *r, struct drps_err *err)
{
    int rc = 0;
    if (p->n++ && r->hi != p->number) rc = add_gathered(p, err);
    if (p->n == 1 || r->hi != p->number) p->rare = no_rare;
    p->number = r->hi;
    take_first(&p->rare.row[0], (uint32_t)(r->lo >> 32));
    take_first(&p->rare.row[1], (uint32_t)r->lo);
    take_first(&p->rare.row[2], r->a);
    return rc;
}

/* Whether a record with this row begins a cluster. What has no row of the class is alone. */
static int begins(struct passing *p, unsigned class, uint32_t row)
{
    return !p->n++ || row == NONE || row != p->rare.row[class];
}

/* Samples with the same row of the first class take the other rows of the first of them. */
static int join_samples(struct passing *p, const struct drps_sort_record *r, struct drps_err *err)
{
    const struct rare own = {{(uint32_t)(r->hi >> 32), (uint32_t)r->hi, (uint32_t)(r->lo >> 32)}};
    if (begins(p, 0, own.row[0])) p->rare = own;
    const struct drps_sort_record to = {.hi = pack(p->rare.row[1], p->rare.row[2]),
                                        .lo = pack(own.row[0], (uint32_t)r->lo),
                                        .a = r->a,
                                        .b = r->b};
    return drps_extsort_add(p->to, &to, err);
}

/* So do clusters with the same row of the second class. */
static int join_clusters(struct passing *p, const struct drps_sort_record *r, struct drps_err *err)
{
    const struct rare own = {{NONE, (uint32_t)(r->hi >> 32), (uint32_t)r->hi}};
    if (begins(p, 1, own.row[1])) p->rare = own;
    const struct drps_sort_record to = {
        .hi = pack(p->rare.row[2], own.row[1]), .lo = r->lo, .a = r->a, .b = r->b};
    return drps_extsort_add(p->to, &to, err);
}

static uint64_t parts_of(const struct micro_job *job)
{
    const uint64_t parts = (job->samples + MICRO_PART / 2) / MICRO_PART;
    return parts ? parts : 1;
}

/* Returns which of `of` equal parts of all 64-bit numbers a random number lies in. */
static uint64_t part_of(uint64_t random, uint64_t of)
{
    return (uint64_t)((__uint128_t)random * of >> 64);
}

static int deal(struct passing *p, const struct drps_sort_record *r, struct drps_err *err)
{
    const uint64_t group = p->n++ / MICRO_GROUP;
    const uint64_t random = drps_rng_at(p->job->seed ^ GROUP_STREAM, group);
    const struct drps_sort_record to = {.hi = pack(r->a, r->b),
                                        .lo = part_of(random, parts_of(p->job))};
    return drps_extsort_add(p->to, &to, err);
}

/* Step from one sort to the next, which takes its place. */
static int pass(struct passing *p, const char *name, struct drps_extsort **sort,
                int (*step)(struct passing *, const struct drps_sort_record *, struct drps_err *),
                struct drps_err *err)
{
    const struct drps_sort_record *r;
    *p = (struct passing){.job = p->job};
    int rc = drps_extsort_finish(*sort, err);
    if (rc == 0)
        rc = drps_extsort_open(p->job->io, p->job->dir, name, p->job->memory_bytes / SORTS, &p->to,
                               err);
    while (rc == 0 && (rc = drps_extsort_next(*sort, &r, err)) > 0)
        rc = step(p, r, err);
    if (rc == 0 && step == gather && p->n) rc = add_gathered(p, err);
    drps_extsort_close(*sort);
    *sort = p->to;
    return rc;
}

/* ---- The samples themselves ---- */

struct placing {
    uint64_t width; /* of a part, in numbers that say an order */
    struct drps_extsort *parts;
    struct spool *to;
};

static int place(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    const struct placing *p = ctx;
    const struct drps_sort_record *r;
    int rc = drps_extsort_next(p->parts, &r, err);
    if (rc < 0) return rc;
    if (!rc) return drps_err_set(err, DRPS_E_CORRUPT, "samples have more than they had before");
    s->order = r->lo * p->width + part_of(s->order, p->width);
    return drps_spool_add(p->to, s, err);
}

int drps_micro_order(const struct micro_job *job, struct spool *from, struct spool *to,
                     struct drps_err *err)
{
    struct passing p = {.job = job};
    struct placing placing = {.width = UINT64_MAX / parts_of(job), .to = to};
    struct drps_extsort *sort;
    int rc =
        drps_extsort_open(job->io, job->dir, "micro-rows", job->memory_bytes / SORTS, &sort, err);
    if (rc == 0) rc = find_all(job, from, sort, err);
    if (rc == 0) rc = pass(&p, "micro-clusters", &sort, gather, err);
    if (rc == 0) rc = pass(&p, "micro-joined", &sort, join_samples, err);
    if (rc == 0) rc = pass(&p, "micro-groups", &sort, join_clusters, err);
    if (rc == 0) rc = pass(&p, "micro-parts", &sort, deal, err);
    if (rc == 0) rc = drps_extsort_finish(sort, err);
    placing.parts = sort;
    const struct spool_visitor v = {.visit = place, .ctx = &placing};
    if (rc == 0) rc = drps_spool_drain(from, 0, &v, err);
    drps_extsort_close(sort);
    return rc;
}
