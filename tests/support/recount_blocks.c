/* One obvious loop each; a round is a walk over all batches (recount_blocks.h). */
#include "tests/support/recount_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct recount {
    const struct access *a;
    const struct block_options *options;
    uint32_t *kept;             /* own: [n] the rows that may merge */
    uint32_t n;                 /* a block is the place in kept of its smallest row */
    uint32_t *table;            /* own: [n] */
    uint32_t *into;             /* own: [n] the block of each row */
    uint32_t *size, *count;     /* own: [n] of blocks */
    uint8_t *busy;              /* own: [n] merged in this round */
    uint32_t *both;             /* own: [n][n] batches that touch two blocks */
    uint32_t *begin, *end, *in; /* own: [batches], the rows of each in kept: in[begin .. end) */
};

static uint32_t uses_of(const struct access *a, uint32_t row)
{
    return (uint32_t)(a->start[row + 1] - a->start[row]);
}

/* Whether a row stays alone. */
static int is_pruned(const struct recount *r, uint32_t row)
{
    const uint32_t uses = uses_of(r->a, row);
    uint32_t before = 0;
    if (uses < r->options->min_count) return 1;
    for (uint32_t o = 0; r->options->keep_rows && o < r->a->rows; o++)
        before += uses_of(r->a, o) > uses || (uses_of(r->a, o) == uses && o < row);
    return r->options->keep_rows && before >= r->options->keep_rows;
}

static int begin(struct recount *r, const struct block_tables *tables)
{
    const struct access *a = r->a;
    r->kept = malloc((a->rows + 1) * sizeof(*r->kept));
    r->table = malloc((a->rows + 1) * sizeof(*r->table));
    if (!r->kept || !r->table) return -ENOMEM;
    for (uint32_t t = 0; t < tables->n; t++)
        for (uint32_t row = tables->first[t]; row < tables->first[t + 1]; row++)
            if (!is_pruned(r, row)) {
                r->table[r->n] = t;
                r->kept[r->n++] = row;
            }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->n; i++)
        sum += uses_of(a, r->kept[i]);
    r->into = malloc((r->n + 1) * sizeof(*r->into));
    r->size = malloc((r->n + 1) * sizeof(*r->size));
    r->count = malloc((r->n + 1) * sizeof(*r->count));
    r->busy = malloc(r->n + 1);
    r->both = malloc(((size_t)r->n * r->n + 1) * sizeof(*r->both));
    r->begin = calloc(a->batches + 1, sizeof(*r->begin));
    r->end = calloc(a->batches + 1, sizeof(*r->end));
    r->in = malloc((sum + 1) * sizeof(*r->in));
    if (!r->into || !r->size || !r->count || !r->busy || !r->both || !r->begin || !r->end || !r->in)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n; i++) {
        r->into[i] = i;
        r->size[i] = 1;
        for (uint64_t k = a->start[r->kept[i]]; k < a->start[r->kept[i] + 1]; k++)
            r->end[a->batch[k]]++;
    }
    for (uint32_t b = 0, at = 0; b < a->batches; b++) {
        r->begin[b] = at;
        at += r->end[b];
        r->end[b] = r->begin[b];
    }
    for (uint32_t i = 0; i < r->n; i++)
        for (uint64_t k = a->start[r->kept[i]]; k < a->start[r->kept[i] + 1]; k++)
            r->in[r->end[a->batch[k]]++] = i;
    return 0;
}

/* Count blocks and pairs of them, batch by batch. */
static int count(struct recount *r)
{
    uint32_t *met = malloc((r->n + 1) * sizeof(*met)), n;
    uint8_t *seen = calloc(r->n + 1, 1);
    memset(r->both, 0, (size_t)r->n * r->n * sizeof(*r->both));
    memset(r->count, 0, r->n * sizeof(*r->count));
    for (uint32_t b = 0; met && seen && b < r->a->batches; b++) {
        n = 0;
        for (uint32_t i = r->begin[b]; i < r->end[b]; i++) {
            const uint32_t block = r->into[r->in[i]];
            if (seen[block]) continue;
            seen[block] = 1;
            met[n++] = block;
        }
        for (uint32_t i = 0; i < n; i++) {
            seen[met[i]] = 0;
            r->count[met[i]]++;
            for (uint32_t j = 0; j < n; j++)
                r->both[(size_t)met[i] * r->n + met[j]]++;
        }
    }
    const int rc = met && seen ? 0 : -ENOMEM;
    free(met);
    free(seen);
    return rc;
}

static double cost_of(const struct recount *r, double uses, double size)
{
    return uses * (r->options->cost.seek + size * r->options->cost.row);
}

/* What merging gains, or 0 where it is not allowed. */
static double gain_of(const struct recount *r, uint32_t x, uint32_t y)
{
    const uint32_t both = r->both[(size_t)x * r->n + y];
    const double size = (double)r->size[x] + r->size[y];
    const double uses = (double)r->count[x] + r->count[y] - both;
    if (!both || r->table[x] != r->table[y] || size > r->options->max_rows) return 0;
    if (r->options->max_weight > 0 && cost_of(r, uses, size) > r->options->max_weight) return 0;
    const double gain = r->options->cost.seek * both -
                        r->options->cost.row * ((double)(r->count[x] - both) * r->size[y] +
                                                (double)(r->count[y] - both) * r->size[x]);
    return gain > r->options->min_gain ? gain : 0;
}

/* Merge the best pair of blocks that have not merged in this round; 0: there is none. */
static int merge_best(struct recount *r)
{
    double best = 0;
    uint32_t a = 0, b = 0;
    for (uint32_t x = 0; x < r->n; x++)
        for (uint32_t y = x + 1; r->size[x] && !r->busy[x] && y < r->n; y++) {
            const double gain = r->size[y] && !r->busy[y] ? gain_of(r, x, y) : 0;
            if (gain <= best) continue;
            best = gain;
            a = x;
            b = y;
        }
    if (best <= 0) return 0;
    r->busy[a] = r->busy[b] = 1;
    r->size[a] += r->size[b];
    r->size[b] = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->into[i] == b) r->into[i] = a;
    return 1;
}

/* Blocks in the order of their smallest rows, others alone. */
static int lay_out(const struct recount *r, struct block_layout *out)
{
    const uint32_t rows = r->a->rows;
    uint32_t *next = malloc((r->n + 1) * sizeof(*next)), position = 0;
    out->order = malloc((rows + 1) * sizeof(*out->order));
    out->first = malloc(((size_t)rows + 1) * sizeof(*out->first));
    for (uint32_t row = 0, i = 0; next && out->order && out->first && row < rows; row++) {
        const int kept = i < r->n && r->kept[i] == row;
        const uint32_t block = kept ? r->into[i] : 0;
        if (!kept || block == i) {
            out->first[out->blocks++] = position;
            if (kept) next[i] = position;
            if (!kept) out->order[position] = row;
            position += kept ? r->size[i] : 1;
        }
        if (kept) out->order[next[block]++] = row;
        i += (uint32_t)kept;
    }
    const int rc = next && out->order && out->first ? 0 : -ENOMEM;
    if (rc == 0) out->first[out->blocks] = rows;
    free(next);
    return rc;
}

static void end(struct recount *r)
{
    free(r->kept);
    free(r->table);
    free(r->into);
    free(r->size);
    free(r->count);
    free(r->busy);
    free(r->both);
    free(r->begin);
    free(r->end);
    free(r->in);
}

int recount_blocks(const struct access *a, const struct block_tables *tables,
                   const struct block_options *options, uint32_t k, struct block_layout *out)
{
    struct recount r = {.a = a, .options = options};
    uint32_t made = 1;
    *out = (struct block_layout){0};
    int rc = begin(&r, tables);
    while (rc == 0 && made) {
        rc = count(&r);
        memset(r.busy, 0, r.n);
        for (made = 0; rc == 0 && made < k && merge_best(&r);)
            made++;
    }
    if (rc == 0) rc = lay_out(&r, out);
    end(&r);
    return rc;
}
