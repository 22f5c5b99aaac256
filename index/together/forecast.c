/* How many bytes a rank will send (drps_together.h): from its own features, counted, and from a
 * sample of those of all ranks. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/dictionary/dealt/drps_dict_dealt.h"
#include "index/dictionary/drps_dict_walk.h"
#include "index/together/drps_together.h"

enum { SAMPLED = 64, RANKS_MOST = 200 };

/* Bytes that a row of a list takes: those of its gap to the row before, and two bits. A gap below
 * 256 takes one byte. As rows lie in the order of their uses, a row that at least this share of the
 * batches use is taken to have such a gap. */
static const double near_bytes = 1.25, far_bytes = 2.25, near_share = 1.0 / 180;
/* Bytes of a row that is told with its uses: both are small numbers. */
static const double use_bytes = 2.5;
/* Bytes of the heads of a packed list, which each slice of rows has, and each batch for each
 * server; rows of a slice; bytes of a sample and of each of its entries when it is moved. */
enum { LIST_HEAD_BYTES = 8, SLICE_ROWS = 1 << 16, SAMPLE_BYTES = 24, ENTRY_BYTES = 4 };

struct forecasting {
    struct swap_ranks *ranks;
    const struct together_forecast *f;
    uint64_t train, test;   /* samples of this rank's worker, about */
    double batches, evals;  /* of this worker */
    uint64_t keys, trained; /* features of this rank; of its training samples */
    uint64_t text;          /* bytes of their names, where they have some */
    int strings;
    double batch_uses;  /* rows that a batch uses */
    double batch_bytes; /* bytes of the lists of these, if others held them all */
};

/* A feature of the sample, as a rank tells its owner. */
struct told {
    uint64_t key;
    double uses; /* batches of the rank that have it; 0: of evaluation alone */
};
struct told_by {
    struct told t;
    uint32_t rank;
};

/* Returns the probability that a batch has a feature which `count` of the samples have. */
static double in_batch(const struct forecasting *g, uint32_t count)
{
    const double share = (double)count / (double)(g->train ? g->train : 1);
    const double size = fmin((double)g->f->batch_size, (double)g->train);
    return share < 1 ? -expm1(size * log1p(-share)) : 1;
}

static int is_sampled(uint64_t key)
{
    return drps_rng_at(0x666f726563617374u /* "forecast" */, key) % SAMPLED == 0;
}

/* ---- What each rank tells ---- */

static int tell(struct forecasting *g, struct swap *s, const struct dict_key *k,
                struct drps_err *err)
{
    const double p = k->count ? in_batch(g, k->count) : 0;
    g->keys++;
    g->trained += k->count > 0;
    g->text += k->bytes;
    g->strings |= k->text != NULL;
    g->batch_uses += p;
    g->batch_bytes += p * (p >= near_share ? near_bytes : far_bytes);
    if (!is_sampled(k->key)) return 0;
    const struct told t = {k->key, p * g->batches};
    return drps_swap_put(s, drps_dict_owner(k->key, g->ranks->count), &t, sizeof(t), err);
}

static int tell_all(struct forecasting *g, struct swap *s, struct drps_err *err)
{
    struct dict_walk *w = NULL;
    struct dict_key k;
    int rc = drps_dict_seal(g->f->dict, err);
    if (rc == 0) rc = drps_dict_walk_open(g->f->dict, 0, &w, err);
    while (rc == 0 && (rc = drps_dict_walk_next(w, &k, err)) > 0)
        rc = tell(g, s, &k, err);
    drps_dict_walk_close(w);
    return rc == 0 ? drps_swap_end(s, err) : rc;
}

/* ---- What the owners of the sample make of it ---- */

static int by_key(const void *a, const void *b)
{
    const struct told_by *x = a, *y = b;
    if (x->t.key != y->t.key) return x->t.key < y->t.key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int take_told(struct forecasting *g, struct swap *s, struct told_by **out, size_t *n_out,
                     struct drps_err *err)
{
    size_t n = 0, at = 0;
    for (uint32_t r = 0; r < g->ranks->count; r++)
        n += (size_t)(drps_swap_left(s, r) / sizeof(struct told));
    *out = drps_array_new(n + 1, sizeof(**out));
    if (!*out) return drps_err_set(err, -ENOMEM, "no memory for a forecast");
    for (uint32_t r = 0; r < g->ranks->count; r++)
        while (drps_swap_left(s, r) >= sizeof(struct told) && at < n) {
            struct told_by *t = &(*out)[at++];
            t->rank = r;
            int rc = drps_swap_take(s, r, &t->t, sizeof(t->t), err);
            if (rc < 0) return rc;
            if (!(t->t.uses >= 0) || !isfinite(t->t.uses))
                return drps_swap_fault(r, "uses of a feature that make no sense", err);
        }
    qsort(*out, at, sizeof(**out), by_key);
    *n_out = at;
    return 0;
}

/* Shares the uses of a row between the ranks, as all use it alike where samples are dealt, but for
 * chance: few uses are drawn, many are divided. */
static void deal_uses(const struct forecasting *g, uint64_t key, double *uses)
{
    enum { FEW = 64 };
    const uint32_t count = g->ranks->count;
    double sum = 0;
    for (uint32_t r = 0; r < count; r++)
        sum += uses[r];
    for (uint32_t r = 0; r < count; r++)
        uses[r] = sum <= FEW ? 0 : sum / count;
    for (uint32_t i = 0; sum <= FEW && i < (uint32_t)lround(sum); i++)
        uses[drps_rng_at(g->f->seed + key, i) % count]++;
}

/* Adds a row to the sums, which are [1 + 2 ranks]: the rows; the uses of each rank; and the uses
 * that each rank has of rows which other ranks hold. */
static void add_row(const struct forecasting *g, uint64_t key, double *uses, double *sums)
{
    const uint32_t count = g->ranks->count;
    uint32_t home = (uint32_t)(drps_rng_at(g->f->seed, key) % count);
    if (!g->f->kept) deal_uses(g, key, uses);
    for (uint32_t r = 0; r < count && g->f->homes; r++)
        if (uses[r] > uses[home]) home = r;
    sums[0]++;
    for (uint32_t r = 0; r < count; r++) {
        sums[1 + r] += uses[r];
        sums[1 + count + r] += r == home ? 0 : uses[r];
    }
}

static void add_rows(const struct forecasting *g, const struct told_by *told, size_t n,
                     double *uses, double *sums)
{
    for (size_t i = 0, end; i < n; i = end) {
        double all = 0;
        memset(uses, 0, g->ranks->count * sizeof(*uses));
        for (end = i; end < n && told[end].t.key == told[i].t.key; end++) {
            uses[told[end].rank] = told[end].t.uses;
            all += told[end].t.uses;
        }
        if (all > 0) add_row(g, told[i].t.key, uses, sums);
    }
}

/* Adds up the sums of all ranks, each rounded down to a whole number. */
static int add_owners(const struct forecasting *g, double *sums, struct drps_err *err)
{
    const size_t n = 1 + 2 * (size_t)g->ranks->count;
    uint64_t *mine = drps_array_new(n, sizeof(*mine));
    uint64_t *all = NULL;
    int rc = mine ? 0 : drps_err_set(err, -ENOMEM, "no memory for a forecast");
    for (size_t i = 0; i < n && rc == 0; i++)
        mine[i] = sums[i] < 1e15 ? (uint64_t)sums[i] : 0;
    if (rc == 0) rc = drps_swap_gather(g->ranks, mine, n, &all, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        sums[i] = 0;
        for (uint32_t r = 0; r < g->ranks->count; r++)
            sums[i] += (double)all[r * n + i];
    }
    free(mine);
    free(all);
    return rc;
}

static int ask_owners(struct forecasting *g, double *sums, struct drps_err *err)
{
    struct told_by *told = NULL;
    double *uses = drps_array_new(g->ranks->count, sizeof(*uses));
    struct swap *s = NULL;
    size_t n = 0;
    int rc = uses ? drps_swap_open(g->ranks, &s, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a forecast");
    if (rc == 0) rc = tell_all(g, s, err);
    if (rc == 0) rc = take_told(g, s, &told, &n, err);
    if (rc == 0) add_rows(g, told, n, uses, sums);
    drps_swap_close(s);
    free(told);
    free(uses);
    return rc == 0 ? add_owners(g, sums, err) : rc;
}

/* ---- The sum ---- */

/* Returns the bytes that this rank sends to number features
 * (index/dictionary/dealt/drps_dict_dealt.h). */
static double of_dictionary(const struct forecasting *g, double rows)
{
    const double count = g->ranks->count, others = (count - 1) / count;
    const double name = g->strings ? DEALT_STRING_BYTES + (double)g->text / (double)g->keys : 0;
    double bytes = (double)g->keys * (DEALT_KEY_BYTES + name + DEALT_ROW_BYTES) * others;
    bytes += rows / count * (DEALT_PLACE_BYTES + DEALT_NUMBER_BYTES) * others;
    return g->ranks->rank ? bytes + rows / count * (DEALT_NAMED_BYTES + name) : bytes;
}

/* Returns the bytes of the samples that this rank sends where they are dealt; a training sample
 * travels with its order, and the worker that it goes to is told, too. */
static double of_samples(const struct forecasting *g)
{
    const uint32_t rank = g->ranks->rank;
    const double count = g->ranks->count, others = (count - 1) / count;
    const double train = (double)g->f->train_of[rank], all = train + (double)g->f->test_of[rank];
    double total = 0;
    if (g->f->kept) return 0;
    for (uint32_t r = 0; r < g->ranks->count; r++)
        total += (double)g->f->train_of[r] + (double)g->f->test_of[r];
    return others * (train * (sizeof(uint64_t) + sizeof(uint32_t)) + all * SAMPLE_BYTES +
                     all / total * (double)g->f->nnz * ENTRY_BYTES);
}

/* Returns the bytes of the lists that this rank sends: the rows of its batches, and, where rows get
 * homes, rows with their uses. */
static double of_lists(const struct forecasting *g, double rows, double away)
{
    const double others = g->ranks->count - 1, steps = g->batches + g->evals;
    const double lists = steps * (others * LIST_HEAD_BYTES + away * g->batch_bytes);
    const double slices = ceil(rows / SLICE_ROWS);
    if (!g->f->homes) return lists;
    return lists + others * (slices * LIST_HEAD_BYTES * 2 + use_bytes * (double)g->trained);
}

static void share_samples(struct forecasting *g)
{
    const uint32_t count = g->ranks->count, rank = g->ranks->rank;
    const double size = (double)g->f->batch_size;
    uint64_t most[2] = {0}, sum[2] = {0};
    for (uint32_t r = 0; r < count; r++) {
        const uint64_t of[2] = {g->f->train_of[r], g->f->test_of[r]};
        for (int i = 0; i < 2; i++) {
            sum[i] += of[i];
            if (of[i] > most[i]) most[i] = of[i];
        }
    }
    g->train = g->f->kept ? g->f->train_of[rank] : sum[0] / count;
    g->test = g->f->kept ? g->f->test_of[rank] : sum[1] / count;
    g->batches = ceil((double)(g->f->kept ? most[0] : sum[0] / count) / size);
    g->evals = ceil((double)(g->f->kept ? most[1] : sum[1] / count) / size);
}

int drps_together_forecast(struct swap_ranks *ranks, const struct together_forecast *f,
                           uint64_t *bytes_out, struct drps_err *err)
{
    struct forecasting g = {.ranks = ranks, .f = f};
    const uint32_t count = ranks->count;
    *bytes_out = 0;
    if (count > RANKS_MOST) return 0;
    double *sums = calloc(1 + 2 * (size_t)count, sizeof(*sums));
    if (!sums) return drps_err_set(err, -ENOMEM, "no memory for a forecast");
    share_samples(&g);
    int rc = ask_owners(&g, sums, err);
    const double rows = sums[0] * SAMPLED, uses = sums[1 + ranks->rank];
    const double away = uses > 0 ? sums[1 + count + ranks->rank] / uses : 0;
    if (rc == 0)
        *bytes_out =
            (uint64_t)(of_dictionary(&g, rows) + of_samples(&g) + of_lists(&g, rows, away));
    free(sums);
    return rc;
}
