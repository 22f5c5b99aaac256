/* Texts of how ranks fared: few of them a line each, many by the ends of each number. */
#include "tools/train/ranks.h"

#include <inttypes.h>

#include "base/drps_size.h"

struct size_text {
    char text[32];
};

static const char *size(uint64_t bytes, struct size_text *room)
{
    return drps_size_format(bytes, room->text, sizeof(room->text));
}

/* ---- A few ranks have a line each ---- */

/* The forecast is of whole epochs: where none was trained to its end there is none. */
static int has_forecast(const struct drps_train_rank *k)
{
    return k->forecast_sent_bytes || k->forecast_received_bytes;
}

static void print_load(FILE *out, size_t rank, const struct drps_train_rank *k)
{
    struct size_text t[2];
    fprintf(out, "  rank %-4zu %s sent, %s received", rank, size(k->sent_bytes, &t[0]),
            size(k->received_bytes, &t[1]));
    if (has_forecast(k))
        fprintf(out, " (forecast %s, %s)", size(k->forecast_sent_bytes, &t[0]),
                size(k->forecast_received_bytes, &t[1]));
    fprintf(out, "; its worker waited %.1f %% of the time; %s of memory at most\n",
            100 * k->waiting_share, size(k->peak_rss_bytes, &t[0]));
}

static void print_async(FILE *out, size_t rank, const struct drps_train_rank *k)
{
    fprintf(out,
            "  rank %-4zu %" PRIu64 " batches, %" PRIu64
            " of them taken over from slower workers; parameters of %" PRIu64
            " were asked for ahead, of %" PRIu64
            " there in time; held back %.2f s; ahead of the slowest "
            "worker by %.2f batches on average, %" PRIu64 " at most\n",
            rank, k->iterations, k->claimed, k->ahead_used, k->ahead_there, k->held_seconds,
            k->lag_mean, k->lag_max);
}

/* ---- Many ranks are told from the least to the most ---- */

typedef double (*rank_number)(const struct drps_train_rank *k);

struct spread {
    size_t least, most; /* the ranks that have the least and the most */
    double sum;
};

static struct spread spread_of(const struct drps_train_rank *ranks, size_t n, rank_number number)
{
    struct spread s = {0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        const double v = number(&ranks[i]);
        if (v < number(&ranks[s.least])) s.least = i;
        if (v > number(&ranks[s.most])) s.most = i;
        s.sum += v;
    }
    return s;
}

#define RANK_NUMBER(field)                                                                         \
    static double field(const struct drps_train_rank *k)                                           \
    {                                                                                              \
        return (double)k->field;                                                                   \
    }
RANK_NUMBER(sent_bytes)
RANK_NUMBER(received_bytes)
RANK_NUMBER(forecast_sent_bytes)
RANK_NUMBER(forecast_received_bytes)
RANK_NUMBER(peak_rss_bytes)
RANK_NUMBER(waiting_share)
RANK_NUMBER(iterations)
RANK_NUMBER(claimed)
RANK_NUMBER(ahead_used)
RANK_NUMBER(ahead_there)
RANK_NUMBER(held_seconds)
RANK_NUMBER(lag_mean)
RANK_NUMBER(lag_max)
#undef RANK_NUMBER

static struct spread print_sizes(FILE *out, const char *what, const struct drps_train_rank *ranks,
                                 size_t n, rank_number bytes)
{
    struct size_text t[2];
    const struct spread s = spread_of(ranks, n, bytes);
    fprintf(out, "    %-10s %s (rank %zu) to %s (rank %zu)", what,
            size((uint64_t)bytes(&ranks[s.least]), &t[0]), s.least,
            size((uint64_t)bytes(&ranks[s.most]), &t[1]), s.most);
    return s;
}

static void print_traffic(FILE *out, const char *what, const struct drps_train_rank *ranks,
                          size_t n, rank_number bytes, rank_number forecast)
{
    struct size_text t[2];
    const struct spread s = print_sizes(out, what, ranks, n, bytes);
    const uint64_t planned = (uint64_t)spread_of(ranks, n, forecast).sum;
    fprintf(out, ", %s in all", size((uint64_t)s.sum, &t[0]));
    if (planned) fprintf(out, " (forecast %s)", size(planned, &t[1]));
    fprintf(out, "\n");
}

static void print_loads(FILE *out, const struct drps_train_rank *ranks, size_t n)
{
    fprintf(out, "  ranks     %zu, from the least to the most\n", n);
    print_traffic(out, "sent", ranks, n, sent_bytes, forecast_sent_bytes);
    print_traffic(out, "received", ranks, n, received_bytes, forecast_received_bytes);
    const struct spread s = spread_of(ranks, n, waiting_share);
    fprintf(out, "    %-10s %.1f %% (rank %zu, the busiest) to %.1f %% (rank %zu)\n", "waiting",
            100 * ranks[s.least].waiting_share, s.least, 100 * ranks[s.most].waiting_share, s.most);
    (void)print_sizes(out, "memory", ranks, n, peak_rss_bytes);
    fprintf(out, "\n");
}

static void print_asyncs(FILE *out, const struct drps_train_rank *ranks, size_t n)
{
    struct spread s = spread_of(ranks, n, iterations);
    if (s.sum == 0) return;
    fprintf(out,
            "    %-10s %" PRIu64 " (rank %zu) to %" PRIu64
            " (rank %zu), %.0f in all, %.0f of them taken over from slower workers\n",
            "batches", ranks[s.least].iterations, s.least, ranks[s.most].iterations, s.most, s.sum,
            spread_of(ranks, n, claimed).sum);
    fprintf(out, "    %-10s %.0f were asked for ahead, %.0f there in time\n", "parameters",
            spread_of(ranks, n, ahead_used).sum, spread_of(ranks, n, ahead_there).sum);
    s = spread_of(ranks, n, held_seconds);
    fprintf(out, "    %-10s %.2f s (rank %zu) to %.2f s (rank %zu)\n", "held back",
            ranks[s.least].held_seconds, s.least, ranks[s.most].held_seconds, s.most);
    s = spread_of(ranks, n, lag_mean);
    fprintf(out,
            "    %-10s %.2f (rank %zu) to %.2f (rank %zu) batches of the slowest worker, %.0f at "
            "most\n",
            "ahead", ranks[s.least].lag_mean, s.least, ranks[s.most].lag_mean, s.most,
            lag_max(&ranks[spread_of(ranks, n, lag_max).most]));
}

/* ---- Filtered gradients, of all ranks ---- */

static void add_push(struct drps_push_counts *sum, const struct drps_push_counts *c)
{
    sum->plain_bytes += c->plain_bytes;
    sum->sent_bytes += c->sent_bytes;
    sum->whole_bytes += c->whole_bytes;
    sum->values += c->values;
    sum->zero += c->zero;
    sum->below += c->below;
    sum->beyond += c->beyond;
    sum->left_rows += c->left_rows;
    sum->left_sum += c->left_sum;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static void print_push(FILE *out, const struct drps_train_rank *ranks, size_t n)
{
    struct drps_push_counts c = {0};
    struct size_text t[3];
    for (size_t i = 0; i < n; i++)
        add_push(&c, &ranks[i].push);
    if (!c.plain_bytes) return;
    fprintf(
        out,
        "  gradients %s sent in place of %s (%.1f %%), %s of it as rows that could not wait; of "
        "the values of the others %.1f %% were 0, %.1f %% too small and %.1f %% not among the "
        "largest\n",
        size(c.sent_bytes, &t[0]), size(c.plain_bytes, &t[1]), percent(c.sent_bytes, c.plain_bytes),
        size(c.whole_bytes, &t[2]), percent(c.zero, c.values), percent(c.below, c.values),
        percent(c.beyond, c.values));
    if (c.left_rows)
        fprintf(out,
                "            at the end workers still held some of the gradients of %" PRIu64
                " rows, %.6g in all by size, which the model does not have\n",
                c.left_rows, c.left_sum);
}

/* ---- Filtered parameters, of all ranks ---- */

static void print_pull(FILE *out, const struct drps_train_rank *ranks, size_t n)
{
    struct drps_pull_counts c = {0};
    struct size_text t[2];
    for (size_t i = 0; i < n; i++) {
        c.plain_bytes += ranks[i].pull.plain_bytes;
        c.sent_bytes += ranks[i].pull.sent_bytes;
        c.rows += ranks[i].pull.rows;
        c.unchanged += ranks[i].pull.unchanged;
        c.below += ranks[i].pull.below;
    }
    if (!c.plain_bytes) return;
    fprintf(out,
            "  parameters %s sent in place of %s (%.1f %%) in training; of the rows workers had "
            "%.1f %% as they were, and %.1f %% were changed by too little\n",
            size(c.sent_bytes, &t[0]), size(c.plain_bytes, &t[1]),
            percent(c.sent_bytes, c.plain_bytes), percent(c.unchanged, c.rows),
            percent(c.below, c.rows));
}

/* ---- Copies of parameters, of all ranks ---- */

static void print_copies(FILE *out, const struct drps_train_rank *ranks, size_t n)
{
    uint64_t copies = 0, sent = 0;
    for (size_t i = 0; i < n; i++) {
        const struct drps_traffic_sum *s = ranks[i].sent;
        copies += s[DRPS_TRAFFIC_CACHED].rows;
        sent += s[DRPS_TRAFFIC_PULLED].rows + s[DRPS_TRAFFIC_AHEAD].rows;
    }
    if (copies)
        fprintf(out,
                "  copies    of %" PRIu64 " rows of other ranks %.1f %% were not asked for, as "
                "workers had copies\n",
                copies + sent, percent(copies, copies + sent));
}

static void print_ranks(FILE *out, const struct drps_train_rank *ranks, size_t n, int details)
{
    if (n > TRAIN_RANKS_LISTED) {
        print_loads(out, ranks, n);
        if (details) print_asyncs(out, ranks, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        print_load(out, i, &ranks[i]);
    for (size_t i = 0; details && i < n; i++)
        if (ranks[i].iterations) print_async(out, i, &ranks[i]);
}

void train_ranks_print(FILE *out, const struct drps_train_rank *ranks, size_t n, int details)
{
    print_ranks(out, ranks, n, details);
    print_push(out, ranks, n);
    print_pull(out, ranks, n);
    print_copies(out, ranks, n);
}
