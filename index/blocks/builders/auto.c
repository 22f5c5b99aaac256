/*
 * Pages of rows as they are, the same rows in a finer order, or blocks merged for a store that
 * keeps blocks for a while: what costs less both by Eq. 1 and under a pool, or else pages of rows
 * as they are.
 *
 * Rows lie by access pattern already, so rows that belong together are not far apart. So parts of
 * neighbours are looked at one by one: time is that of the accesses and of parts x batches, and
 * memory that of the parts in hand. Parts know nothing of each other: threads share them.
 * Merging takes ten times as long as ordering and gains where features depend on each other; data
 * with more than MERGED_ACCESSES are only ordered.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/blocks/builders/auto_part.h"
#include "index/blocks/builders/builders.h"

enum {
    PART_ROWS = 1 << 17, /* and a page more, at most */
    PART_ACCESSES = 1 << 20,
    MERGED_ACCESSES = 1 << 22, /* of all parts */
    MOST_THREADS = 64,
    THREAD_PARTS = 4 /* loaded at once for each thread, when there are several */
};

/* Memory while a part is merged, or only ordered, bytes; greedy takes more if there is. */
enum {
    ROW_BYTES = 4 * sizeof(uint32_t), /* of all rows: counts, the layout, rows asked for */
    PART_ROW_BYTES = 112,
    PART_BATCH_BYTES = 48,
    ORDERED_ROW_BYTES = 48,
    ORDERED_ACCESS_BYTES = 12,
    ORDERED_BATCH_BYTES = 16,
    LOADED_BYTES = 8 /* an access, while lists of several parts are loaded at once */
};

/* ---- Parts ---- */

/* Whole pages of a table from row `first` on. */
static struct auto_part part_from(const struct portfolio *p, uint32_t first, uint32_t table_end)
{
    const uint32_t page = p->options->max_rows;
    struct auto_part part = {.first = first, .end = first};
    do {
        const uint32_t end = table_end - part.end > page ? part.end + page : table_end;
        for (; part.end < end; part.end++)
            part.accesses += p->count[part.end];
    } while (part.end < table_end && part.accesses < PART_ACCESSES && part.end - first < PART_ROWS);
    return part;
}

static int split(struct portfolio *p, struct drps_err *err)
{
    uint64_t accesses = 0;
    for (size_t t = 0; t < p->tables->n; t++)
        for (uint32_t row = p->tables->first[t]; row < p->tables->first[t + 1];) {
            if (drps_array_reserve(&p->part, &p->cap, p->n + 1, sizeof(*p->part)))
                return drps_err_set(err, -ENOMEM, "no memory for parts of the rows");
            p->part[p->n] = part_from(p, row, p->tables->first[t + 1]);
            accesses += p->part[p->n].accesses;
            row = p->part[p->n++].end;
        }
    p->merges = accesses <= MERGED_ACCESSES;
    return 0;
}

/* ---- Several parts at a time ---- */

/* The parts from `first` to before `end`, whose lists are loaded. */
struct choosing {
    struct portfolio *p;        /* borrowed */
    const struct access *lists; /* borrowed */
    size_t first, end;
    atomic_size_t next; /* the first part that nobody has taken */
};

static int choose_part(struct choosing *c, size_t i, struct drps_err *err)
{
    struct auto_part *part = &c->p->part[i];
    const struct access own = {part->end - part->first, c->lists->batches,
                               c->lists->start + (part->first - c->p->part[c->first].first),
                               c->lists->batch}; /* borrowed */
    return drps_auto_choose(c->p, &own, part, err);
}

/* One of those who share parts out among themselves. */
struct chooser {
    struct choosing *c; /* borrowed */
    pthread_t thread;
    int rc;
    struct drps_err err;
};

/* Choose for parts that nobody has taken. The order is relaxed: nothing but the number is told, and
 * joining tells what became of the parts. */
static void *choose_shared(void *arg)
{
    struct chooser *me = arg;
    struct choosing *c = me->c;
    for (size_t i; me->rc == 0;) {
        i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
        if (i >= c->end) break;
        me->rc = choose_part(c, i, &me->err);
    }
    return NULL;
}

/* A part's layout depends on no other, so threads change nothing but the time. The first of these
 * is the calling one; one that does not start is done without. */
static int choose_together(struct choosing *c, unsigned threads, struct drps_err *err)
{
    struct chooser chooser[MOST_THREADS];
    unsigned started = 1;
    for (unsigned i = 0; i < threads; i++)
        chooser[i] = (struct chooser){.c = c, .err = DRPS_ERR_INIT};
    while (started < threads &&
           pthread_create(&chooser[started].thread, NULL, choose_shared, &chooser[started]) == 0)
        started++;
    (void)choose_shared(&chooser[0]);
    int rc = chooser[0].rc;
    if (rc < 0 && err) *err = chooser[0].err;
    for (unsigned i = 1; i < started; i++) {
        (void)pthread_join(chooser[i].thread, NULL); /* cannot fail for a thread of ours */
        if (rc == 0 && (rc = chooser[i].rc) < 0 && err) *err = chooser[i].err;
    }
    return rc;
}

/* The parts from `first` to before `end`; rows: room for all their rows. */
static int choose_range(struct portfolio *p, size_t first, size_t end, uint32_t *rows,
                        struct drps_err *err)
{
    const uint32_t from = p->part[first].first, n = p->part[end - 1].end - from;
    struct access lists;
    struct choosing c = {.p = p, .lists = &lists, .first = first, .end = end};
    atomic_init(&c.next, first);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = from + i;
    int rc = p->counts->ops->lists(p->counts, rows, n, UINT64_MAX, &lists, err);
    if (rc == 0) rc = choose_together(&c, p->threads, err);
    drps_access_free(&lists);
    return rc;
}

/* How many accesses are loaded at once, if those of one part are not more. Where counts are
 * streamed, as many as memory allows: each list is a pass over all. */
static uint64_t loaded_accesses(const struct portfolio *p)
{
    if (p->counts->streamed) return (p->options->memory_bytes - p->fixed_bytes) / 2 / LOADED_BYTES;
    return p->threads > 1 ? (uint64_t)p->threads * THREAD_PARTS * PART_ACCESSES : 0;
}

static int choose_all(struct portfolio *p, struct drps_err *err)
{
    const uint64_t room = loaded_accesses(p);
    uint32_t *rows = drps_array_new(p->counts->blocks, sizeof(*rows));
    int rc = rows ? 0 : drps_err_set(err, -ENOMEM, "no memory for %u rows", p->counts->blocks);

    for (size_t first = 0, end; first < p->n && rc == 0; first = end) {
        uint64_t accesses = p->part[first].accesses;
        for (end = first + 1; end < p->n && accesses + p->part[end].accesses <= room; end++)
            accesses += p->part[end].accesses;
        rc = choose_range(p, first, end, rows, err);
    }
    free(rows);
    return rc;
}

/* ---- The result ---- */

static int put_together(const struct portfolio *p, struct block_layout *out, struct drps_err *err)
{
    const uint32_t rows = p->counts->blocks;
    int moves = 0;
    for (size_t i = 0; i < p->n; i++)
        moves |= p->part[i].layout.order != NULL;
    out->first = drps_array_new((size_t)rows + 1, sizeof(*out->first));
    if (moves) out->order = drps_array_new(rows, sizeof(*out->order));
    if (!out->first || (moves && !out->order))
        return drps_err_set(err, -ENOMEM, "no memory for a layout of %u rows", rows);
    for (size_t i = 0; i < p->n; i++) {
        const struct auto_part *part = &p->part[i];
        const struct block_layout *l = &part->layout;
        for (uint32_t k = 0; moves && k < part->end - part->first; k++)
            out->order[part->first + k] = part->first + (l->order ? l->order[k] : k);
        for (size_t b = 0; b < l->blocks; b++)
            out->first[out->blocks++] = part->first + l->first[b];
        if (!l->order)
            out->blocks += drps_auto_cut_pages(p, part->first, part->end, part->first,
                                               out->first + out->blocks);
    }
    out->first[out->blocks] = rows;
    return 0;
}

/* What little memory left out. */
static void explain(const struct portfolio *p, const char *what, uint64_t needed,
                    struct block_layout *out)
{
    char wanted[32], given[32];
    (void)snprintf(
        out->note, sizeof(out->note),
        "block builder auto: rows %s; more takes %s of memory, and %s are given: raise the "
        "memory limit",
        what, drps_size_format(needed, wanted, sizeof(wanted)),
        drps_size_format(p->options->memory_bytes, given, sizeof(given)));
}

/* The memory of the part that takes most, beside that of all rows. */
static uint64_t part_bytes(const struct portfolio *p)
{
    const uint64_t row_bytes = p->merges ? PART_ROW_BYTES : ORDERED_ROW_BYTES;
    const uint64_t access_bytes = p->merges ? AUTO_MERGE_ACCESS_BYTES : ORDERED_ACCESS_BYTES;
    const uint64_t batch_bytes = p->merges ? PART_BATCH_BYTES : ORDERED_BATCH_BYTES;
    uint64_t most = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct auto_part *part = &p->part[i];
        const uint64_t bytes =
            (uint64_t)(part->end - part->first) * row_bytes + part->accesses * access_bytes;
        if (bytes > most) most = bytes;
    }
    return most + p->counts->batches * batch_bytes;
}

/* The number of counting threads that memory has room for, each with a part in hand. Merging has
 * one thread: the memory that is left decides how blocks are merged. */
static unsigned count_threads(const struct portfolio *p)
{
    const uint64_t room =
        (p->options->memory_bytes - p->fixed_bytes) / (p->counts->streamed ? 2 : 1);
    const uint64_t each =
        part_bytes(p) +
        (p->counts->streamed ? 0 : (uint64_t)THREAD_PARTS * PART_ACCESSES * LOADED_BYTES);
    const uint64_t most = p->options->threads < MOST_THREADS ? p->options->threads : MOST_THREADS;
    const uint64_t threads = room / each < most ? room / each : most;
    return p->merges || threads < 2 ? 1 : (unsigned)threads;
}

static int build(struct portfolio *p, struct block_layout *out, struct drps_err *err)
{
    p->fixed_bytes = (uint64_t)p->counts->blocks * ROW_BYTES;
    p->count = drps_array_new(p->counts->blocks, sizeof(*p->count));
    int rc =
        p->count ? 0 : drps_err_set(err, -ENOMEM, "no memory to count %u rows", p->counts->blocks);
    if (rc == 0) rc = p->counts->ops->reset(p->counts, err);
    if (rc == 0) rc = p->counts->ops->counts(p->counts, p->count, err);
    if (rc == 0) rc = split(p, err);
    if (rc < 0) return rc;
    const uint64_t needed = p->fixed_bytes + part_bytes(p);
    if (needed <= p->options->memory_bytes) {
        p->threads = count_threads(p);
        rc = choose_all(p, err);
    }
    if (rc == 0) rc = put_together(p, out, err);
    if (needed > p->options->memory_bytes)
        explain(p, "stay where they are, in pages", needed, out);
    else if (p->lacked)
        explain(p, "were merged by likeness, not each compared with all others", p->lacked, out);
    return rc;
}

int drps_block_build_auto(struct counts *counts, const struct block_tables *tables,
                          const struct block_options *options, struct block_layout *layout_out,
                          struct drps_err *err)
{
    struct portfolio p = {.counts = counts, .tables = tables, .options = options};
    *layout_out = (struct block_layout){0};
    int rc = build(&p, layout_out, err);
    for (size_t i = 0; i < p.n; i++)
        drps_block_layout_free(&p.part[i].layout);
    free(p.part);
    free(p.count);
    return rc;
}
