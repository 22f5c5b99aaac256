/* What drps-stat prints of a plan. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/cluster/drps_rounds.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "tools/drps_forecast_text.h"
#include "api/report/drps_link.h"
#include "tools/stat/print.h"
#include "tools/drps_json_text.h"

static void print_files(const json_t *files)
{
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f)
        printf("  file     %-12s %10s\n", text_of(f, "name"), size_of(f, "bytes"));
}

/* Some rows that a window uses are kept for the next window; the others leave it. Training holds as
 * many of those as it has memory for, and sends the rest to disk. */
static void print_plan_windows(const json_t *j)
{
    if (number_at(j, "windows_later")) {
        printf("  windows  none: all rows fit in the memory of drps-index (%s)\n",
               size_of(j, "memory_bytes"));
        return;
    }
    printf("  windows  %s of batches whose rows are in memory together, cut for %s\n          "
           " two of them have at most %s",
           counted_of(j, "windows", "run"), size_of(j, "window_budget_bytes"),
           counted_of(j, "working_set_rows", "row"));
    if (!json_object_get(j, "window_rows")) { /* made by an older drps-index */
        printf("\n");
        return;
    }
    printf(", one %s\n           an epoch: %s kept from window to window (%s), %s leave (%s)\n",
           count_of(j, "max_window_rows"), counted_of(j, "window_rows_kept", "row"),
           share_of(j, "window_rows_kept", "window_rows"), count_of(j, "window_rows_moved"),
           share_of(j, "window_rows_moved", "window_rows"));
}

/* The text of the samples' order: "shuffled", "shuffled (4 lanes)", "grid (16 x 16, 4 lanes)". */
static const char *order_of(const struct drps_plan_info *info)
{
    char *room = text_room();
    char lanes[32] = "";
    if (!info->grid_users && !info->lanes) return info->order;
    if (!info->grid_users) {
        (void)snprintf(room, TEXT_BYTES, "shuffled (%" PRIu64 " lanes)", info->lanes);
        return room;
    }
    if (info->lanes) (void)snprintf(lanes, sizeof(lanes), ", %" PRIu64 " lanes", info->lanes);
    (void)snprintf(room, TEXT_BYTES, "grid (%" PRIu64 " x %" PRIu64 "%s)", info->grid_users,
                   info->grid_items, lanes);
    return room;
}

/* Prints what reading every batch's rows would cost in an epoch (Eq. 1 of the paper). */
static void print_block_cost(const char *how, double requests, double rows, double alone,
                             const struct drps_plan_info *i)
{
    const double bytes = rows * (double)i->row_bytes;
    const double seconds = requests * (double)i->seek_ns / 1e9 + bytes / (double)i->transfer_bps;
    printf("    %-24s %13.0f %11s %10.2f s", how, requests, size_text(bytes), seconds);
    if (alone > 0) printf(" %6.1f %%", 100 * seconds / alone);
    printf("\n");
}

static void print_block_costs(const struct drps_plan_info *i)
{
    if (!i->block_uses || !i->transfer_bps) return; /* an older plan does not have them */
    const double uses = (double)i->row_uses;
    const double alone =
        uses * (double)i->seek_ns / 1e9 + uses * (double)i->row_bytes / (double)i->transfer_bps;
    const double steps = (double)(i->batches + i->eval_batches);
    printf("  reading all rows of every batch, nothing in memory (a request %.1f us, %.0f MB/s)\n",
           (double)i->seek_ns / 1e3, (double)i->transfer_bps / 1e6);
    printf("    %-24s %13s %11s %12s\n", "", "requests", "bytes", "time");
    print_block_cost("one row a block", uses, uses, 0, i);
    print_block_cost("these blocks", (double)i->block_uses, (double)i->block_use_rows, alone, i);
    print_block_cost("these blocks, in runs", (double)i->runs, (double)i->run_rows, alone, i);
    print_block_cost("scans of all rows", steps, steps * (double)i->rows, alone, i);
}

/* What an epoch moves between ranks: parameters, or in training whole rows where they circulate. */
static const char *link_text(const struct drps_plan_info *i, uint64_t rows, uint64_t eval_rows)
{
    const double row = (double)i->dim * sizeof(float);
    const double full = drps_plan_circulates(i) ? (double)i->row_bytes : row;
    return size_text((double)rows * full + (double)eval_rows * row);
}

/* Prints which rows workers have themselves. */
static void print_handed(const struct drps_plan_info *info)
{
    const struct drps_plan_handed *h = &info->ranks.handed;
    char used[DRPS_COUNT_BYTES], slots[DRPS_COUNT_BYTES];
    if (!h->slots) return;
    printf("           rows are handed on with the state of %s: workers have %s of those that they "
           "would pull in training",
           drps_plan_states_name(h->states), drps_count_format(h->used, used));
    if (info->ranks.rank == DRPS_PLAN_WHOLE && info->ranks.pulled_rows)
        printf(", and an epoch moves %.2f of what it would",
               (double)drps_plan_moved_values(info, 1, h->states) /
                   (double)drps_plan_moved_values(info, 0, 0));
    printf("; at most %s at a time\n", drps_count_format(h->slots, slots));
}

/* What each way to exchange gradients would take: of all ranks, in the training of an epoch. */
static void print_exchange(const struct drps_plan *plan)
{
    const struct drps_plan_info *info = &plan->info;
    struct drps_exchange_bytes sum = {{0}};
    if (!drps_plan_is_matrix(info) || drps_plan_shape(info) != DRPS_PLAN_ALL ||
        !drps_ranks_are_alike(&info->ranks))
        return;
    for (uint32_t r = 0; r < info->ranks.count; r++) {
        const struct drps_train_options usual = {0};
        struct drps_exchange_bytes bytes = {{0}};
        struct drps_plan *part = NULL;
        int rc = drps_plan_open_rank(plan->io, plan->dir, r, &part, NULL);
        if (rc == 0) rc = drps_exchange_forecast(part, 0, &usual, &bytes, NULL);
        drps_plan_close(part);
        if (rc < 0) return; /* --verify says what it is */
        for (int way = 0; way < DRPS_EXCHANGES; way++)
            sum.of[way] += bytes.of[way];
    }
    printf("           exchanged in an epoch's training, by way (drps-train --exchange):");
    for (int way = 0; way < DRPS_EXCHANGES; way++)
        printf("%s %s %s", way ? "," : "", drps_exchange_name((enum drps_exchange)way),
               size_text((double)sum.of[way]));
    printf("\n");
}

/* Prints that of these rows a net's own do not travel, where that is the default. */
static void print_common(const struct drps_plan_info *info)
{
    static const struct drps_train_options usual;
    struct drps_outer_choice vectors;
    if (!drps_rounds_sums_common(info, &usual)) return;
    printf("           but those of the net's own parameters: each rank has them, and ranks add "
           "up their gradients (drps-train --net-exchange)\n");
    drps_rounds_vectors(info, &usual, &vectors);
    for (uint32_t i = 0; i < vectors.n; i++)
        printf("%s line %u (%u x %u)%s",
               i ? "," : "           of these as vectors those of layers:", vectors.layers[i].line,
               vectors.layers[i].w, vectors.layers[i].N, i + 1 == vectors.n ? "\n" : "");
}

/* Prints what goes round of sums that each rank has. */
static void print_sums(const struct drps_plan_info *info)
{
    struct drps_rounds_bytes bytes = {0};
    drps_rounds_forecast_sums(info, 1, &bytes);
    if (bytes.sent)
        printf("           each rank sends the next one sums of all documents, about %s an epoch\n",
               size_text((double)bytes.sent));
}

static void print_ranks(const struct drps_plan *plan)
{
    const struct drps_plan_ranks *k = &plan->info.ranks;
    const int circulates = drps_plan_circulates(&plan->info);
    char ranks[DRPS_PLAN_RANKS_TEXT_BYTES];
    if (k->count < 2) return;
    if (drps_ranks_are_alike(k))
        printf("  workers  %u, %s", k->workers,
               circulates ? "between which ranges of rows circulate"
                          : "each with a batch a round and a server");
    else
        printf("  workers  %s: servers from rank 0 on, workers from rank %u",
               drps_plan_ranks_text(k, ranks), k->first_worker);
    if (k->rank != DRPS_PLAN_WHOLE)
        printf("; this is the part of rank %u, with the rows from %llu on", k->rank,
               (unsigned long long)k->first_row);
    if (circulates)
        printf("\n           an epoch hands %s on with adagrad's state, and %s without for test "
               "samples\n",
               link_text(&plan->info, k->served_rows, 0),
               link_text(&plan->info, 0, k->eval_served_rows));
    else
        printf(
            "\n           an epoch's parameters between ranks: %s pulled, %s served; gradients of "
            "training go back\n",
            link_text(&plan->info, k->pulled_rows, k->eval_pulled_rows),
            link_text(&plan->info, k->served_rows, k->eval_served_rows));
    if (k->residual_slots)
        printf("           gradients and parameters can be filtered: a worker keeps what is not "
               "sent, or "
               "copies, of %llu rows at most, %s for each%s\n",
               (unsigned long long)k->residual_slots, link_text(&plan->info, 0, k->residual_slots),
               k->own_slots ? "; each row has a place of its own, also from epoch to epoch" : "");
    print_handed(&plan->info);
    print_exchange(plan);
    print_common(&plan->info);
    print_sums(&plan->info);
}

/* Prints what an epoch asks of each machine whose part is here, without the gradients, which go
 * back. */
static void print_machines(const struct drps_plan *plan, uint64_t link_bits)
{
    struct drps_link_load most = {0};
    char speed[DRPS_LINK_TEXT];
    if (plan->info.ranks.rank != DRPS_PLAN_WHOLE || plan->info.ranks.count < 2) return;
    printf("\n  %4s %10s %11s %11s %11s %15s %9s\n", "rank", "rows", "row uses", "pulled", "served",
           "relay, most", "windows");
    for (uint32_t r = 0; r < plan->info.ranks.count; r++) {
        struct drps_plan *part;
        struct drps_err err = DRPS_ERR_INIT;
        if (drps_plan_open_rank(drps_io_os(), plan->dir, r, &part, &err) < 0) {
            printf("  %4u %s\n", r, err.text);
            continue;
        }
        const struct drps_plan_info *i = &part->info;
        printf("  %4u %10llu %11llu %11s %11s %15s %9llu\n", r, (unsigned long long)i->rows,
               (unsigned long long)i->row_uses,
               link_text(i, i->ranks.pulled_rows, i->ranks.eval_pulled_rows),
               link_text(i, i->ranks.served_rows, i->ranks.eval_served_rows),
               rows_text(i->window_rows_moved, i->window_rows_moved, i->row_bytes),
               (unsigned long long)i->windows);
        const struct drps_link_load load = drps_link_of_part(i);
        drps_link_raise(&most, &load);
        drps_plan_close(part);
    }
    printf("  with links of %s (--link) an epoch takes %.4g s at least: rank %" PRIu32
           "'s sends %s and receives %s\n",
           drps_link_speed_text(link_bits, speed), drps_link_seconds(&most, link_bits), most.rank,
           size_text((double)most.sent_bytes), size_text((double)most.received_bytes));
}

/* Prints which items were drawn, and what a choice is worth. */
static void print_negatives(const struct drps_plan_info *info)
{
    const struct drps_plan_negatives *n = &info->negatives;
    if (!n->each) return;
    printf("  drawn    %u a training sample, %s (--negatives), in %u pass%s an epoch; %u a test "
           "sample\n",
           n->each, n->by_popularity ? "popular" : "even", n->draws, n->draws == 1 ? "" : "es",
           n->test);
    if (strcmp(info->algo, drps_algo_name(DRPS_ALGO_WMF)) == 0) {
        printf("  choices  confidence 1 + %g times the rating (--alpha); ", n->alpha);
        if (n->weight > 0)
            printf("negatives of a sample weigh %g together\n", n->weight);
        else
            printf("negatives stand for all items that a user has not chosen\n");
    }
    if (n->below)
        printf("  left out %" PRIu64 " lines whose rating is too small (--positive-from)\n",
               n->below);
}

void stat_print_plan(const struct drps_plan *plan, const struct stat_shown *shown)
{
    const json_t *j = plan->json;
    printf("plan %s: %s, %s loss, %s input, %s order\n", plan->dir, text_of(j, "algo"),
           text_of(j, "loss"), text_of(j, "format"), order_of(&plan->info));
    stat_print_expression(plan->info.expression, plan->info.outputs);
    stat_print_net(plan->info.net);
    printf("  id       %s, made by %s\n", text_of(j, "id"), text_of(j, "made_by"));
    printf("  samples  %s training, %s test\n", count_of(j, "samples"),
           count_of(j, "test_samples"));
    if (plan->info.weights.most > 0)
        printf("  weights  training samples weigh %g together, %g at most; test samples %g\n",
               plan->info.weights.sum, plan->info.weights.most, plan->info.weights.test_sum);
    print_negatives(&plan->info);
    if (json_is_number(json_object_get(j, "constant_loss")))
        printf("  constant the best one has a loss of %s, on test samples %s\n",
               number_of(j, "constant_loss", "%.6f"), number_of(j, "test_constant_loss", "%.6f"));
    printf("  entries  %s training, %s test (features of samples that are not 0); %s more are left "
           "out, as training never saw these features\n",
           count_of(j, "nnz"), count_of(j, "test_nnz"), count_of(j, "test_unseen"));
    printf("  rows     %s of %s, one for each feature, user or item\n", count_of(j, "rows"),
           counted_of(j, "dim", "float"));
    stat_print_hashing(&plan->info.hashing);
    stat_print_sequences(&plan->info.sequences);
    if (plan->info.base[0])
        printf("  base     plan %s: its %llu rows have their numbers here\n", plan->info.base,
               (unsigned long long)plan->info.base_rows);
    stat_print_classes(plan->info.classes);
    stat_print_tables(json_object_get(j, "tables"));
    printf("  batches  %s training, %s test, of %s; the largest uses %s\n", count_of(j, "batches"),
           count_of(j, "test_batches"), counted_of(j, "batch_size", "sample"),
           counted_of(j, "max_batch_rows", "row"));
    print_ranks(plan);
    print_machines(plan, shown->link_bits);
    if (shown->details) {
        printf("  blocks   %s of rows that are read and written together (%s), of at most %s; "
               "at most %s a batch\n",
               count_of(j, "blocks"), text_of(j, "blocks_by"),
               counted_of(j, "max_block_rows", "row"), count_of(j, "max_step_blocks"));
        print_block_costs(&plan->info);
        print_plan_windows(j);
        print_files(json_object_get(j, "files"));
    }
    forecast_print(stdout, json_object_get(j, "forecast"));
}
