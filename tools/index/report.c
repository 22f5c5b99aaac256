/* The summary of drps-index: some lines on what was made and what training it takes, and the
 * details that a user asks for. What drps-train needs is asked of engine/. */
#include "tools/index/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "index/forecast/drps_plan_forecast.h"
#include "tools/drps_cli.h"
#include "tools/drps_forecast_text.h"
#include "tools/index/network.h"

/*
 * The bytes that an epoch reads, and writes, with so many bytes of rows in memory: between two
 * sizes of the forecast, along a line over the logarithm of the size. 0: the forecast does not say.
 */
static uint64_t moved_bytes(const struct drps_index_result *r, uint64_t held_bytes)
{
    const struct drps_forecast *above = NULL;
    for (size_t i = 0; i < r->forecasts; i++) {
        const struct drps_forecast *f = &r->forecast[i];
        if (strcmp(f->store, "relay") != 0 || !f->feasible) continue;
        if (f->memory_bytes > held_bytes) {
            above = f;
            continue;
        }
        if (!above || !f->memory_bytes) return f->read_bytes;
        const double part = log2((double)above->memory_bytes / (double)held_bytes) /
                            log2((double)above->memory_bytes / (double)f->memory_bytes);
        return (uint64_t)((double)above->read_bytes +
                          part * ((double)f->read_bytes - (double)above->read_bytes));
    }
    return 0;
}

/* ---- Words ---- */

enum { TEXTS = 8, TEXT_BYTES = 48, TELLING_BYTES = 1 << 20 /* of a rate */ };

/* One of a few buffers, in turn: a line shows several. */
static char *next_text(void)
{
    static char texts[TEXTS][TEXT_BYTES];
    static unsigned at;
    at = (at + 1) % TEXTS;
    return texts[at];
}

static const char *size(uint64_t bytes)
{
    return drps_size_format(bytes, next_text(), TEXT_BYTES);
}

static const char *count(uint64_t n)
{
    return drps_cli_grouped(n, next_text());
}

/* A size as --memory takes it: whole MiB, rounded up, so that what is shown is enough. */
static const char *memory(uint64_t bytes)
{
    char *text = next_text();
    (void)snprintf(text, TEXT_BYTES, "%lluM", (unsigned long long)((bytes + (1 << 20) - 1) >> 20));
    return text;
}

static const char *hashing(const struct drps_plan_info *i)
{
    static char text[DRPS_HASHING_TEXT_BYTES];
    return drps_hashing_text(&i->hashing, text);
}

/* ---- The first lines ---- */

/* 1: the net looks at no feature. */
static int is_one_feature(const struct drps_plan_info *i)
{
    struct drps_layers net;
    return drps_layers_parse(&net, i->net, NULL) == 0 && !net.has_features;
}

static void print_features(const struct drps_plan_info *i, const struct drps_index_result *r)
{
    const struct drps_algorithm *a = drps_algorithm_find(i->algo);
    const int rates = a && drps_algorithm_rates(a);
    const char *join = "";
    if (i->net[0] && is_one_feature(i)) {
        printf("a net of %s, over numbers of %s", drps_cli_counted(r->net_parameters, "parameter"),
               drps_cli_counted(i->field_count, "field"));
        return;
    }
    for (size_t t = 0; t < i->tables_n; t++) {
        const struct drps_table *table = &i->tables[t];
        if (table == i->tables && drps_plan_common_rows(i)) continue;
        const char *what = strcmp(table->name, "user") == 0   ? "user"
                           : strcmp(table->name, "item") == 0 ? "item"
                           : strcmp(table->name, "doc") == 0  ? "document"
                           : strcmp(table->name, "word") == 0 ? "word"
                           : rates                            ? "users and item"
                                                              : "feature";
        printf("%s%s", join, drps_cli_counted(table->rows, what));
        join = ", ";
    }
    const char *what = strcmp(i->algo, "topic") == 0 ? "topic" : "factor";
    if (i->hashing.bits) printf(" (hashed: %s)", hashing(i));
    if (i->net[0])
        printf(" with a weight and %s each, and a net of %s",
               drps_cli_counted(i->factors, "factor"),
               drps_cli_counted(r->net_parameters, "parameter"));
    else if (drps_plan_row_fields(i))
        printf(" with %s for each of %s", drps_cli_counted(i->factors, "factor"),
               drps_cli_counted(i->field_count, "field"));
    else if (i->factors)
        printf(" with %s each", drps_cli_counted(i->factors, what));
}

/* Prints what implicit feedback was made of, and what was left out. */
static void print_negatives(const struct drps_plan_info *i)
{
    const struct drps_plan_negatives *n = &i->negatives;
    const struct {
        uint64_t count;
        const char *one, *what;
    } left_out[] = {
        {n->below, "line", "whose rating is too small"},
        {n->few + n->test_few, "sample", "of users who have chosen all items"},
        {n->test_new, "test sample", "whose user or item training does not have"},
    };
    if (!n->each) return;
    printf("  drawn    %s a training sample, %s", count(n->each),
           n->by_popularity ? "by popularity" : "evenly");
    if (n->draws > 1) printf(", anew in each of %s passes of an epoch", count(n->draws));
    if (i->test_samples) printf("; %s a test sample", count(n->test));
    printf("\n");
    for (size_t k = 0; k < sizeof(left_out) / sizeof(left_out[0]); k++)
        if (left_out[k].count)
            printf("  left out %s %s\n", drps_cli_counted(left_out[k].count, left_out[k].one),
                   left_out[k].what);
}

static void print_samples(const struct drps_plan_info *i, const struct drps_index_result *r)
{
    const uint64_t batches = i->batches * i->ranks.workers;
    printf("  samples  %s training, in ", count(i->samples));
    if (batches == 1)
        printf("one batch");
    else
        printf("%s of %s", drps_cli_counted(batches, "batch"), count(i->batch_size));
    if (i->test_samples) printf("; %s test", count(i->test_samples));
    if (r->skipped_lines) printf("; %s skipped", drps_cli_counted(r->skipped_lines, "bad line"));
    if (r->weightless)
        printf("; %s of weight 0 left out", drps_cli_counted(r->weightless, "sample"));
    printf("\n");
    if (i->sequences.most)
        printf("  sequence %s, at most %s\n",
               i->sequences.lines ? "each line is one" : "text runs on over line ends",
               drps_cli_counted(i->sequences.most, "sample"));
    print_negatives(i);
    if (!(i->weights.most > 0)) return;
    printf("  weights  training samples weigh %g together, %g at most", i->weights.sum,
           i->weights.most);
    if (i->test_samples) printf("; test samples %g", i->weights.test_sum);
    printf("\n");
}

static void print_memory(const struct drps_index_report *report)
{
    const struct drps_plan_info *i = &report->result->info;
    const struct drps_train_needs *n = &report->needs;
    const char *whose = report->options->memory_bytes ? "as given here" : "the default here";
    const char *each = i->ranks.count > 1 ? "for each rank, " : "";
    if (n->all_rows_bytes <= n->least_bytes)
        printf("  memory   %sdrps-train --memory %s keeps all rows in memory, and is the least\n",
               each, memory(n->least_bytes));
    else
        printf("  memory   %sdrps-train --memory %s keeps all rows in memory; %s is the least\n",
               each, memory(n->all_rows_bytes), memory(n->least_bytes));
    if (report->no_rows_bytes)
        printf("           on ranks that hold no rows %s is the least\n",
               memory(report->no_rows_bytes));
    if (!n->fits)
        printf("           with %s, %s, it would refuse\n", memory(i->memory_bytes), whose);
    if (!n->fits || n->keeps_all_rows || !n->held_rows_bytes) return;
    const uint64_t moved = moved_bytes(report->result, n->held_rows_bytes);
    printf("           with %s, %s, ", memory(i->memory_bytes), whose);
    if (moved)
        printf("an epoch reads about %s of rows from disk, and writes as much\n", size(moved));
    else
        printf("rows are read from disk and written again\n");
}

/* What homes of rows bring: nothing moves where the workers share no row. */
static void print_links(const struct drps_index_result *r)
{
    const struct drps_index_links *l = &r->links;
    if (l->largest > 0)
        printf(
            "  rounds   in the most uneven round a worker has %.3f times its share of the entries; "
            "before samples were exchanged it was %.3f\n",
            l->largest, l->largest_before);
    if (!l->hashed_rows || !l->moved_rows) return;
    printf(
        "  links    an epoch moves %.2f of what hashed rows and dealt samples would; the busiest "
        "carries %.2f of the average\n",
        drps_index_report_moved(r), drps_index_report_busiest(r));
    if (l->set_rows)
        printf("  sets     ranks pull %s, each counted once for each rank that uses it; the "
               "busiest rank pulls and serves %s\n",
               drps_cli_counted(l->set_rows, "row"), count(l->busiest_set_rows));
    printf(
        "  fresh    of the first epoch's parameters between ranks %.1f %% are of rows that nobody "
        "has trained: they are made, not sent\n",
        100 * drps_index_report_fresh(r));
}

/* What rows that are handed on bring. */
static void print_handed(const struct drps_plan_info *i)
{
    const struct drps_plan_handed *h = &i->ranks.handed;
    if (!h->slots) return;
    if (!h->used) {
        printf("  handed   no row is handed on: nothing would move less\n");
        return;
    }
    printf("  handed   %.1f %% of the rows that an epoch would pull stay with workers or go from "
           "worker to worker: with %s, it moves %.2f of what it would\n",
           100 * (double)h->used / (double)i->ranks.pulled_rows, drps_plan_states_name(h->states),
           drps_index_report_handed_on(i));
}

/* What a model must be better than. */
static void print_constant(const struct drps_plan_info *i)
{
    if (isnan(i->constant_loss)) return;
    printf(" (the best constant has %.6f", i->constant_loss);
    if (!isnan(i->test_constant_loss)) printf(", on test samples %.6f", i->test_constant_loss);
    printf(")");
}

static void print_summary(const struct drps_index_report *report)
{
    const struct drps_index_result *r = report->result;
    const struct drps_plan_info *i = &r->info;
    const double parse_seconds = r->phase_seconds[DRPS_PHASE_PARSE];
    const char *from = report->options->from_plan;
    if (from)
        printf("plan %s, of the plan %s: dealt in %.1f s", report->options->out, from, r->seconds);
    else
        printf("plan %s, of %s: %s%s in %.1f s", report->options->out, i->format,
               size(r->input_bytes), strcmp(i->format, "idx") == 0 ? "" : " of text", r->seconds);
    if (r->input_bytes >= TELLING_BYTES && parse_seconds > 0)
        printf(" (reading it: %.0f MB/s)", (double)r->input_bytes / 1e6 / parse_seconds);
    printf("\n");
    print_samples(i, r);
    printf("  model    %s, %s loss", i->algo, i->loss);
    print_constant(i);
    if (r->classes[0])
        printf("; classes %s", r->classes);
    else if (i->classification)
        printf("; label %g is the positive class, %g the negative", (double)i->label_positive,
               (double)i->label_negative);
    if (i->expression[0]) printf("\n  loss     %s", i->expression);
    if (i->outputs) printf(", of %s", drps_cli_counted(i->outputs, "output"));
    printf("\n  size     ");
    print_features(i, r);
    if (strcmp(i->algo, "topic") == 0)
        printf(": %s\n", size(i->rows * i->row_bytes));
    else
        printf(": %s of parameters, %s with adagrad's state in training\n",
               size(i->rows * i->dim * 4), size(i->rows * i->row_bytes));
    if (i->base[0])
        printf("  base     %s: its %s rows keep their numbers, %s %s new\n", report->options->base,
               count(i->base_rows), count(i->rows - i->base_rows),
               i->rows - i->base_rows == 1 ? "is" : "are");
    if (r->replayed)
        printf("  replay   %s of its samples are trained on once more\n", count(r->replayed));
    print_memory(report);
    print_links(r);
    print_handed(i);
}

/* ---- Details ---- */

static int print_forecasts(const struct drps_index_result *r, struct drps_err *err)
{
    json_t *list = drps_forecast_to_json(r->forecast, r->forecasts);
    if (!list) return drps_err_set(err, -ENOMEM, "no memory for the forecast");
    forecast_print(stdout, list);
    json_decref(list);
    return 0;
}

static uint64_t handed_bytes(const struct drps_plan_info *i)
{
    if (!drps_plan_circulates(i)) return 0;
    return i->ranks.served_rows * i->row_bytes + i->ranks.eval_served_rows * i->dim * sizeof(float);
}

static void print_workers(const struct drps_index_result *r)
{
    const struct drps_plan_info *i = &r->info;
    const uint64_t handed = handed_bytes(i);
    const uint64_t plain = r->plain_rows * i->dim * sizeof(float);
    char ranks[DRPS_PLAN_RANKS_TEXT_BYTES];
    if (!handed) {
        printf("\n%s%s, in rounds of a batch each\n", drps_plan_ranks_text(&i->ranks, ranks),
               drps_ranks_are_alike(&i->ranks) ? " and servers" : "");
        return;
    }
    printf("\n%s, %s: an epoch hands %s on, %s with adagrad's state\n",
           drps_cli_counted(i->ranks.count, "worker"), drps_cli_counted(i->lanes, "lane"),
           drps_cli_counted(drps_index_report_handed_rows(i), "row"), size(handed));
    if (plain)
        printf("  %.2g %% of what rounds of these batches would pull and push\n",
               100.0 * (double)handed / (double)plain);
}

/* What the machines have sent to each other while they made the plan together. */
static void print_sent(const struct drps_index_result *r)
{
    uint64_t sum = 0, most = 0, forecast = 0;
    for (uint32_t k = 0; k < r->info.ranks.count; k++) {
        const uint64_t sent = r->ranks[k].sent_bytes;
        sum += sent;
        forecast += r->ranks[k].sent_forecast;
        if (sent > most) most = sent;
    }
    if (!sum) return;
    printf("  made by  %u machines, which sent %s to each other, one of them %s at most",
           r->info.ranks.count, size(sum), size(most));
    if (forecast) printf(" (forecast: %s)", size(forecast));
    printf("\n");
}

static void print_ranks(const struct drps_index_result *r)
{
    const struct drps_plan_info *i = &r->info;
    if (i->ranks.count < 2) return;
    print_workers(r);
    printf("  %4s %11s %12s %9s %8s  %s\n", "rank", "rows", "row uses", "plan", "windows",
           drps_plan_circulates(i) ? "an epoch's rows from and to other ranks"
                                   : "an epoch's parameters from and to other ranks");
    for (uint32_t k = 0; k < i->ranks.count; k++) {
        const struct drps_index_rank *rank = &r->ranks[k];
        printf("  %4u %11llu %12llu %9s %8llu  %s, %s\n", k, (unsigned long long)rank->rows,
               (unsigned long long)rank->row_uses, size(rank->plan_bytes),
               (unsigned long long)rank->windows,
               size(rank->pulled_rows * drps_index_report_link_bytes(i)),
               size(rank->served_rows * drps_index_report_link_bytes(i)));
    }
}

static void print_windows(const struct drps_plan_info *i)
{
    if (!i->windows)
        printf("  windows  none: all rows (%s) fit in memory\n", size(i->rows * i->row_bytes));
    else
        printf("  windows  %s of batches whose rows are in memory together; two of them have at "
               "most %s (%s)\n",
               drps_cli_counted(i->windows, "run"), drps_cli_counted(i->working_set_rows, "row"),
               size(i->working_set_rows * i->row_bytes));
}

static void print_details(const struct drps_index_result *r)
{
    const struct drps_plan_info *i = &r->info;
    printf(
        "\n  entries  %s training, %s test (features of samples that are not 0); %s more are left "
        "out, as training never saw these features\n",
        count(i->nnz), count(i->test_nnz), count(i->test_unseen));
    printf("  rows     %s of %s; the largest batch uses %s\n", count(i->rows),
           drps_cli_counted(i->dim, "float"), count(i->max_batch_rows));
    printf("  blocks   %s of rows that are read and written together (%s), at most %s a batch\n",
           count(i->blocks), i->blocks_by, count(i->max_step_blocks));
    print_windows(i);
    printf("  disk     %s for the plan, %s for the model; %s for rows that are not in memory\n"
           "           (relay: up to a quarter more), and the parameters once more at the end\n",
           size(r->plan_bytes), size(i->rows * i->dim * 4), size(i->rows * i->row_bytes));
    printf("  peak     %s of memory for drps-index itself\n", size(drps_memory_peak()));
}

int index_report_rank(const struct drps_index_report *report, uint32_t rank)
{
    const struct drps_index_result *r = report->result;
    printf("rank %u of %u: plan %s/rank-%u, %s in %.1f s; rank 0 tells of the whole\n", rank,
           r->info.ranks.count, report->options->out, rank, size(r->ranks[rank].plan_bytes),
           r->seconds);
    return 0;
}

int index_report_text(const struct drps_index_report *report, int details, struct drps_err *err)
{
    print_summary(report);
    print_sent(report->result);
    index_network_print(&report->network, details);
    print_ranks(report->result);
    if (!details && report->needs.keeps_all_rows) return 0;
    print_details(report->result);
    return print_forecasts(report->result, err);
}
