/*
 * What does a block builder take, and what is its layout worth? The accesses are those of a plan.
 *
 *   bench_blocks [OPTION]... PLAN BUILDER
 *
 * Prints the seconds of building, the peak memory of the process (and of its largest shard), the
 * blocks, Eq. 1 of the layout and of one row a block, and the modelled I/O time of an epoch with
 * coalescing, nothing being kept in memory, against pages of the rows as the plan has placed them,
 * and what no layout can be below. Layouts are equal where their checksums are.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/drps_checksum.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/counts/drps_stream.h"
#include "index/blocks/remote/drps_remote.h"
#include "tests/support/price.h"
#include "tests/support/recount_blocks.h"

struct setting {
    const char *plan;
    const struct block_builder *builder; /* NULL: all pairs are counted anew in each round */
    struct block_options options;
    struct block_tables tables;
    struct access_source work;
    uint32_t shards; /* 0: no other process */
    uint32_t page_rows;
    int json;
};

struct result {
    double load_seconds, build_seconds;
    double cpu_seconds;  /* of the processor, for both, without shards */
    uint64_t peak_bytes; /* until it is built */
    size_t blocks;
    int streamed;
    uint64_t checksum;
    struct layout_price built, rows, pages;
    double bound; /* of I/O with coalescing, microseconds */
};

static int open_plan(struct setting *g, struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(drps_io_os(), g->plan, &plan, err);
    if (rc < 0) return rc;
    g->tables.n = plan->info.tables_n;
    for (size_t t = 0; t < g->tables.n; t++)
        g->tables.first[t] = (uint32_t)plan->info.tables[t].first;
    g->tables.first[g->tables.n] = (uint32_t)plan->info.rows;
    g->work =
        (struct access_source){.io = drps_io_os(),
                               .dir = g->plan,
                               .rows = (uint32_t)plan->info.rows,
                               .batches = (uint32_t)(plan->info.batches + plan->info.eval_batches),
                               .share = g->options.sample,
                               .seed = g->options.seed,
                               .memory_bytes = g->options.memory_bytes};
    drps_plan_close(plan);
    return 0;
}

static int price_builder(const struct setting *g, const struct access *a, const char *name,
                         uint32_t max_rows, struct layout_price *out, struct drps_err *err)
{
    struct block_options options = g->options;
    struct block_layout layout;
    options.max_rows = max_rows;
    int rc = drps_block_builder_find(name)->build(NULL, &g->tables, &options, &layout, err);
    if (rc == 0) rc = layout_price(a, &layout, &options.cost, out, err);
    drps_block_layout_free(&layout);
    return rc;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Find each batch's rows, and its share of the rows, each shared by the batches that touch it. Both
 * come sorted. */
static void weigh_batches(const struct access *a, double *rows, double *share)
{
    for (uint32_t r = 0; r < a->rows; r++)
        for (uint64_t i = a->start[r]; i < a->start[r + 1]; i++) {
            rows[a->batch[i]]++;
            share[a->batch[i]] += 1 / (double)(a->start[r + 1] - a->start[r]);
        }
    qsort(rows, a->batches, sizeof(*rows), by_size);
    qsort(share, a->batches, sizeof(*share), by_size);
}

/*
 * The least I/O of any layout, rows of an order being read without pages. Row 0 has a table of its
 * own, so it is the first whatever the order; where all batches touch it, the batches that are read
 * in one request each read from there to their last row. So the j-th shortest of these reads all
 * rows of the shorter ones too, which are no fewer than the j least shares together. All others
 * take two requests at least, and their rows.
 */
static int bound_io(const struct access *a, const struct block_cost *cost, double *out,
                    struct drps_err *err)
{
    const uint32_t n = a->batches;
    double *rows = calloc((size_t)n + 1, sizeof(*rows)),
           *share = calloc((size_t)n + 1, sizeof(*share));
    if (rows && share) weigh_batches(a, rows, share);
    double two = 0, one = 0, end = 0;
    for (uint32_t b = 0; rows && b < n; b++)
        two += 2 * cost->seek + rows[b] * cost->row;
    *out = two;
    for (uint32_t m = 1; rows && share && m <= n; m++) {
        end += share[m - 1];
        one += cost->seek + end * cost->row;
        two -= 2 * cost->seek + rows[n - m] * cost->row;
        if (one + two < *out) *out = one + two;
    }
    if (a->rows && a->start[1] < n) *out = 0; /* says nothing */
    free(rows);
    free(share);
    return rows && share ? 0 : drps_err_set(err, -ENOMEM, "no memory to weigh %u batches", n);
}

/* Whatever share of the batches the builder counts, and from wherever, all of them are priced. */
static int price(const struct setting *g, const struct block_layout *built, struct result *r,
                 struct drps_err *err)
{
    struct access_source all = g->work;
    struct access a;
    all.memory_bytes = UINT64_MAX;
    int rc = drps_access_load(&all, 0, all.batches, &a, err);
    if (rc == 0) rc = layout_price(&a, built, &g->options.cost, &r->built, err);
    if (rc == 0) rc = price_builder(g, &a, "none", 1, &r->rows, err);
    if (rc == 0) rc = price_builder(g, &a, "pattern", g->page_rows, &r->pages, err);
    if (rc == 0) rc = bound_io(&a, &g->options.cost, &r->bound, err);
    drps_access_free(&a);
    return rc;
}

/* The paper's merging as it is printed, of accesses in memory. */
static int recount(const struct setting *g, struct result *r, struct block_layout *layout,
                   struct drps_err *err)
{
    struct access_source all = g->work;
    struct access a;
    all.memory_bytes = UINT64_MAX;
    uint64_t start = drps_clock_ns();
    int rc = drps_access_load(&all, 0, all.batches, &a, err);
    r->load_seconds = drps_seconds_since(start);
    start = drps_clock_ns();
    if (rc == 0 && recount_blocks(&a, &g->tables, &g->options, g->options.top_k, layout) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory to count all pairs of so many rows");
    r->build_seconds = drps_seconds_since(start);
    drps_access_free(&a);
    return rc;
}

static int build(const struct setting *g, struct result *r, struct block_layout *layout,
                 struct drps_err *err)
{
    const struct access_source *w = &g->work;
    struct counts *t = NULL;

    uint64_t start = drps_clock_ns();
    int rc = g->shards ? drps_remote_open(w, g->shards, &t, err)
                       : drps_counts_make(w, 0, w->batches, &t, err);
    if (rc == 0) r->streamed = t->streamed;
    r->load_seconds = drps_seconds_since(start);
    start = drps_clock_ns();
    if (rc == 0) rc = g->builder->build(t, &g->tables, &g->options, layout, err);
    r->build_seconds = drps_seconds_since(start);
    if (t) t->ops->close(t);
    return rc;
}

static uint64_t checksum_of(const struct block_layout *l)
{
    const size_t rows = l->first[l->blocks];
    const uint64_t both[] = {drps_checksum(l->first, (l->blocks + 1) * sizeof(*l->first)),
                             l->order ? drps_checksum(l->order, rows * sizeof(*l->order)) : 0};
    return drps_checksum(both, sizeof(both));
}

static int measure(const struct setting *g, struct result *r, struct drps_err *err)
{
    struct block_layout layout = {0};
    const clock_t from = clock();
    int rc = g->builder ? build(g, r, &layout, err) : recount(g, r, &layout, err);
    r->cpu_seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
    r->blocks = layout.blocks;
    if (rc == 0) r->checksum = checksum_of(&layout);
    r->peak_bytes = drps_memory_peak();
    if (rc == 0) rc = price(g, &layout, r, err);
    drps_block_layout_free(&layout);
    return rc;
}

static void print(const struct setting *g, const struct result *r)
{
    struct rusage shards;
    (void)getrusage(RUSAGE_CHILDREN, &shards); /* cannot fail */
    const double peak = (double)r->peak_bytes / 1048576;
    const double shard_peak = (double)shards.ru_maxrss / 1024;
    const char *format =
        g->json ? "{\"builder\":\"%s\",\"streamed\":%d,\"rows\":%u,\"batches\":%u,\"load_seconds\":"
                  "%.3f,"
                  "\"build_seconds\":%.3f,\"peak_mib\":%.0f,\"shard_peak_mib\":%.0f,\"blocks\":%zu,"
                  "\"eq1_seconds\":%.6f,\"eq1_rows_seconds\":%.6f,\"eq1_ratio\":%.4f,"
                  "\"io_seconds\":%.6f,\"io_pages_seconds\":%.6f,\"io_ratio\":%.4f,"
                  "\"io_bound_seconds\":%.6f,\"cpu_seconds\":%.3f,\"layout\":\"%016" PRIx64 "\"}\n"
                : "%s (streamed %d): %u rows, %u batches; loaded in %.3f s, built in %.3f s, peak "
                  "%.0f MiB "
                  "(largest shard %.0f), %zu blocks\n"
                  "  Eq. 1: %.3f s, one row a block %.3f s: %.4f\n"
                  "  I/O:   %.3f s, placed pages    %.3f s: %.4f; no layout below %.3f s\n"
                  "  %.3f s of the processor, layout %016" PRIx64 "\n";
    printf(format, g->builder ? g->builder->name : "recount", r->streamed, g->work.rows,
           g->work.batches, r->load_seconds, r->build_seconds, peak, shard_peak, r->blocks,
           r->built.blocks * 1e-6, r->rows.blocks * 1e-6, r->built.blocks / r->rows.blocks,
           r->built.io * 1e-6, r->pages.io * 1e-6, r->built.io / r->pages.io, r->bound * 1e-6,
           r->cpu_seconds, r->checksum);
}

static const char usage[] =
    "usage: bench_blocks [OPTION]... PLAN BUILDER (none that needs the keys of rows)\n"
    "BUILDER recount: the paper's merging, all pairs being counted anew in each round\n"
    "  --seek US        a request, ts (40)\n"
    "  --row US         a row read and written, ta (0.1133: 68 bytes twice at 1.2 GB/s)\n"
    "  --top-k K        pairs that topk merges a round (50)\n"
    "  --min-gain US    gamma (0)\n"
    "  --min-count F    rows of fewer batches stay alone (0)\n"
    "  --keep N         rows that may merge, the most used (all)\n"
    "  --sample P       share of the batches that is counted (1)\n"
    "  --max-rows N     of a block (unlimited)\n"
    "  --max-weight US  of a block (unlimited)\n"
    "  --page-rows N    of the pages to compare with (60)\n"
    "  --shards N       processes that count (0: none but this one)\n"
    "  --threads N      that auto may use (1)\n"
    "  --seed N         of the sample (1)\n"
    "  --memory SIZE    of the accesses (more stay on disk), and the same of the builder (4G)\n"
    "  --json           print an object\n";

static const struct option options[] = {
    {"seek", 1, NULL, 't'},      {"row", 1, NULL, 'a'},       {"top-k", 1, NULL, 'k'},
    {"min-gain", 1, NULL, 'g'},  {"min-count", 1, NULL, 'f'}, {"keep", 1, NULL, 'e'},
    {"sample", 1, NULL, 'p'},    {"max-rows", 1, NULL, 'r'},  {"max-weight", 1, NULL, 'w'},
    {"page-rows", 1, NULL, 'i'}, {"shards", 1, NULL, 'n'},    {"threads", 1, NULL, 'h'},
    {"seed", 1, NULL, 's'},      {"memory", 1, NULL, 'm'},    {"json", 0, NULL, 'j'},
    {NULL, 0, NULL, 0}};

/* A number of an option; stops the program if it is none. */
static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0)) {
        fprintf(stderr, "bench_blocks: %s is no number of 0 or more\n", text);
        exit(2);
    }
    return value;
}

static uint32_t whole(const char *text)
{
    double value = number(text);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static int set_option(struct setting *g, int option, const char *text)
{
    struct block_options *o = &g->options;
    switch (option) {
    case 't':
        o->cost.seek = number(text);
        return 0;
    case 'a':
        o->cost.row = number(text);
        return 0;
    case 'k':
        o->top_k = whole(text);
        return 0;
    case 'g':
        o->min_gain = number(text);
        return 0;
    case 'f':
        o->min_count = whole(text);
        return 0;
    case 'e':
        o->keep_rows = whole(text);
        return 0;
    case 'p':
        o->sample = number(text);
        return 0;
    case 'r':
        o->max_rows = whole(text);
        return 0;
    case 'w':
        o->max_weight = number(text);
        return 0;
    case 'i':
        g->page_rows = whole(text);
        return 0;
    case 'n':
        g->shards = whole(text);
        return 0;
    case 'h':
        o->threads = whole(text);
        return 0;
    case 's':
        o->seed = whole(text);
        return 0;
    case 'm':
        return drps_size_parse(text, &o->memory_bytes, NULL);
    case 'j':
        g->json = 1;
        return 0;
    default:
        return -1;
    }
}

int main(int argc, char **argv)
{
    struct setting g = {.page_rows = 60,
                        .options = {.cost = {.seek = 40, .row = 0.1133},
                                    .top_k = 50,
                                    .sample = 1,
                                    .max_rows = UINT32_MAX,
                                    .seed = 1,
                                    .memory_bytes = UINT64_C(4) << 30}};
    struct drps_err err = DRPS_ERR_INIT;
    struct result r = {0};
    int wrong = 0;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        wrong |= set_option(&g, option, optarg) != 0;
    const struct block_builder *builder =
        argc - optind == 2 ? drps_block_builder_find(argv[optind + 1]) : NULL;
    const int recounts = argc - optind == 2 && strcmp(argv[optind + 1], "recount") == 0;
    if (wrong || (!builder && !recounts) || (builder && builder->keys) || !g.page_rows ||
        !g.options.max_rows) {
        fputs(usage, stderr);
        return 2;
    }
    g.plan = argv[optind];
    g.builder = builder;
    int rc = open_plan(&g, &err);
    if (rc == 0) rc = measure(&g, &r, &err);
    if (rc == 0)
        print(&g, &r);
    else
        fprintf(stderr, "bench_blocks: %s\n", err.text);
    return rc < 0;
}
