/* The summary of a run as text: what was trained, and where time, memory and disk traffic went. */
#include "tools/train/report.h"

#include <stdio.h>

#include <jansson.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "tools/drps_forecast_text.h"
#include "tools/train/ranks.h"

static const char *size(uint64_t bytes)
{
    static char bufs[8][32];
    static unsigned at;
    at = (at + 1) % 8;
    return drps_size_format(bytes, bufs[at], sizeof(bufs[at]));
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Says how well the blocks in memory served, for --verbose; other stores have none. */
static void print_pool(const struct drps_store_stats *s)
{
    if (!s->blocks_needed) return;
    printf("  blocks    room in memory for %s (%s); of the blocks that batches used %.1f %% "
           "were there, %.1f %% were new\n",
           drps_cli_counted(s->pool.units * s->pool.unit_rows, "row"), size(s->pool_bytes),
           share(s->blocks_hit, s->blocks_needed), share(s->blocks_created, s->blocks_needed));
}

/* Says how rows came into windows, for --verbose; only store relay has windows. */
static void print_windows(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    const uint64_t rows = s->rows_kept + s->rows_arrived + s->rows_created;
    if (!r->windows_n) return;
    printf("  windows   %zu an epoch (batches whose rows are in memory together); of their rows "
           "%.1f %% were in memory already, %.1f %% came from disk, %.1f %% were "
           "new\n",
           r->windows_n, share(s->rows_kept, rows), share(s->rows_arrived, rows),
           share(s->rows_created, rows));
    printf(
        "  runs      %u on disk at a time, at most, in chunks of %s, by %s%s%s%s; %s of rows were "
        "merged\n",
        s->runs, size(s->chunk_bytes), s->io_engine,
        s->direct ? ", past the page cache" : ", through the page cache", *s->io_remark ? "; " : "",
        s->io_remark, size(s->merged_bytes));
}

static void print_traffic(const char *name, uint64_t n, uint64_t bytes, double seconds)
{
    printf("  %-9s %llu (%s, %.1f MB/s)", name, (unsigned long long)n, size(bytes),
           seconds > 0 ? (double)bytes / 1e6 / seconds : 0);
}

static void print_latency(const struct drps_latency *l)
{
    printf("; half took less than %.0f us, 99 %% less than %.0f us\n",
           drps_latency_quantile_us(l, 0.5), drps_latency_quantile_us(l, 0.99));
}

/* The forecast is compared with the last epoch, as rows that are new in the first one are not
 * read. */
static void print_forecast(const struct drps_train_result *r)
{
    char why[FORECAST_REASON];
    if (!r->has_forecast || !r->forecast.feasible || !r->epochs_n) return;
    const struct drps_epoch *last = &r->epochs[r->epochs_n - 1];
    if (!last->written_bytes && !r->forecast.written_bytes) return;
    printf("  forecast  an epoch reads %s and writes %s; %s read %s and wrote %s%s\n",
           size(r->forecast.read_bytes), size(r->forecast.written_bytes),
           last->epoch == 1 && !r->from.all ? "the first, whose rows are new," : "the last",
           size(last->read_bytes), size(last->written_bytes),
           forecast_reason(r->store_stats.merged_bytes, r->forecast.written_bytes,
                           last->written_bytes, why));
}

/* With what was measured, as a share of what was forecast. */
static void print_forecast_time(const struct drps_train_result *r)
{
    const struct drps_epoch_seconds *s = &r->forecast_seconds;
    if (!(s->epoch > 0) || !r->epochs_n) return;
    const double measured = r->epochs[r->epochs_n - 1].seconds;
    printf("  forecast  an epoch takes %.3g s by the plan's speeds (arithmetic %.3g, the disk "
           "%.3g%s); "
           "the last took %.3g s, %.0f %% of that\n",
           s->epoch, s->compute, s->disk, r->ranks_n ? ", without messages" : "", measured,
           100 * measured / s->epoch);
}

/* The least time of an epoch by what the disk was measured to do and by arithmetic, and how near to
 * it training came. */
static void print_limit(const struct drps_train_result *r, int details)
{
    const struct drps_epoch_limit *l = &r->limit;
    if (!l->epochs) return;
    printf("  limit     an epoch takes %.3g s at least (arithmetic %.3g, the disk %.3g beside "
           "it%s); %s "
           "took %.3g s: %.0f %% of the possible speed%s\n",
           l->least.epoch, l->least.compute, l->least.disk,
           l->by_plan ? ", by the plan's speeds" : "",
           l->epochs == 1 ? "the last" : "those after the first", l->measured,
           100 * drps_limit_reached(l),
           l->least.epoch > l->measured ? "; the disk was faster than measured" : "");
    if (details)
        printf("            the disk reads and writes %.0f MB/s together, and a read takes %.3g us "
               "more\n",
               l->pace.bps * 1e-6, l->pace.request_ns * 1e-3);
}

static double step_seconds(const struct drps_phases *p)
{
    return p->plan + p->wait_store + p->gather + p->compute + p->step + p->evaluate + p->hand_over;
}

static void print_from(const struct drps_train_from *f)
{
    char rows[DRPS_CLI_COUNT_BYTES];
    if (!f->all) return;
    printf("  from      %s of %s of an earlier run%s%s\n", drps_cli_grouped(f->rows, rows),
           drps_cli_counted(f->all, "row"), f->state ? ", with the optimizer's state" : "",
           f->rows < f->all ? "; the others were new" : "");
}

static void print_exchange(const struct drps_train_exchange *x)
{
    if (x->way == DRPS_EXCHANGE_SERVERS && !x->chosen) return;
    printf("  exchange  %s", drps_exchange_name(x->way));
    if (x->chosen)
        printf(", %s",
               x->way == x->fewest ? "the fewest bytes" : "as a rank has no room for all rows");
    printf(": an epoch's training takes");
    for (int way = 0; way < DRPS_EXCHANGES; way++)
        if (x->forecast_bytes[way]) /* 0: this way cannot be taken */
            printf("%s %s by %s", way ? "," : "", size(x->forecast_bytes[way]),
                   drps_exchange_name((enum drps_exchange)way));
    printf("\n");
}

/* How gradients of a net's own parameters went; those of servers need no line. */
static void print_common(const struct drps_train_common *c)
{
    uint64_t rest = c->floats;
    if (!c->floats || c->way == DRPS_COMMON_SERVERS) return;
    printf("  net       ");
    for (uint32_t i = 0; i < c->vectors.n; i++) {
        const struct drps_outer_layer *y = &c->vectors.layers[i];
        rest -= (uint64_t)y->w * y->N;
        printf("%s line %u (%u x %u)",
               i ? "," : "gradients exchanged as vectors of layers:", y->line, y->w, y->N);
    }
    printf("%s of %s\n", c->vectors.n ? "; as sums" : "gradients exchanged as sums",
           drps_cli_counted(rest, "parameter"));
}

static void print_checkpoints(const struct drps_train_result *r)
{
    const struct drps_train_checkpoints *c = &r->checkpoints;
    if (r->resumed_epoch)
        printf("  resumed   in epoch %llu, after %s of it; disk and time are of this run "
               "alone\n",
               (unsigned long long)r->resumed_epoch, drps_cli_counted(r->resumed_step, "batch"));
    if (!c->n && !c->failed) return;
    printf("  saved     %s, %s, %.2f s", drps_cli_counted(c->n, "checkpoint"), size(c->bytes),
           c->seconds);
    if (c->rounds)
        printf("; vectors of %s, %s", drps_cli_counted(c->rounds, "round"), size(c->log_bytes));
    if (c->failed) printf("; %llu could not be written", (unsigned long long)c->failed);
    printf("\n");
}

/* Says what only somebody who looks into the store wants to know. */
static void print_disk_details(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    const struct drps_iostat *io = &s->io;
    const double seconds = step_seconds(&r->phases);
    print_pool(s);
    print_windows(r);
    print_traffic("reads", io->reads, io->read_bytes, seconds);
    printf(", %s, %.1f at a time", drps_cli_counted(io->seeks, "seek"),
           io->read_calls ? (double)io->queue_depth_sum / (double)io->read_calls : 0);
    print_latency(&io->read_latency);
    print_traffic("writes", io->writes, io->written_bytes, seconds);
    print_latency(&io->write_latency);
    if (s->device.sector) {
        const struct drps_iostat *d = &s->device.io;
        print_traffic("requests", d->reads, d->read_bytes, seconds);
        printf(" to read, %llu (%s) to write\n", (unsigned long long)d->writes,
               size(d->written_bytes));
    }
}

/* Where rows are. */
static void print_where(const struct drps_train_result *r, int on_disk)
{
    const struct drps_store_stats *s = &r->store_stats;
    const uint64_t on_device = s->tiers.device_bytes;
    printf("  rows      %s%s, ", size(r->rows * r->row_bytes),
           drps_optim_states(&r->optim) ? " with the optimizer's state" : "");
    if (on_disk && on_device)
        printf("of which %s in memory and %s of the device at a time", size(s->pool_bytes),
               size(on_device));
    else if (on_disk)
        printf("of which %s in memory at a time", size(s->pool_bytes));
    else if (on_device)
        printf("all in memory, and %s of the device at a time", size(on_device));
    else
        printf("all in memory%s", *r->device ? " of the device" : "");
    printf(" (store %s)\n", r->store);
}

static void print_rows(const struct drps_train_result *r, int details)
{
    const struct drps_store_stats *s = &r->store_stats;
    const double seconds = step_seconds(&r->phases);
    const double waited = seconds > 0 ? 100 * (double)s->stall_ns * 1e-9 / seconds : 0;
    const int on_disk = s->blocks_needed || r->windows_n;
    print_where(r, on_disk);
    if (s->tiers.device_bytes)
        printf("  moved     in %s %s of rows to the device, %s back; training waited for "
               "them %.1f %% of the time\n",
               drps_cli_counted(s->windows, "window"), size(s->tiers.rows_in * r->row_bytes),
               size(s->tiers.rows_out * r->row_bytes), waited);
    if (!on_disk) return;
    printf(
        "  disk      %s of rows read, %s written; training waited for rows %.1f %% of the time\n",
        size(s->io.read_bytes), size(s->io.written_bytes), waited);
    print_forecast(r);
    if (details) print_disk_details(r);
}

static void print_emulated(const struct drps_train_emulated *e)
{
    printf("  emulated  %s of %.1f s together, of which %.1f s computed; %.2f %% took "
           "longer than they should, %.2f %% late in all\n",
           drps_cli_counted(e->iterations, "batch"), (double)e->emulated_ns * 1e-9,
           (double)e->computed_ns * 1e-9, share(e->overruns, e->iterations),
           share(e->late_ns, e->emulated_ns));
}

static void print_delta(const struct drps_train_delta *d)
{
    if (d->bytes)
        printf("  delta     %s that %s changed and %s, %s\n", drps_cli_counted(d->rows, "row"),
               d->rows == 1 ? "has" : "have", drps_cli_counted(d->fresh, "new one"),
               size(d->bytes));
}

static void print_optimizer(const struct drps_train_result *r)
{
    static const char *const ends[] = {
        [DRPS_NEWTON_GOES_ON] = "not at the tolerance yet: more epochs would go on",
        [DRPS_NEWTON_CONVERGED] = "converged",
        [DRPS_NEWTON_STALLED] = "ended where floats have no more digits",
    };
    const struct drps_optim *o = &r->optim;
    if (o->kind == DRPS_OPTIM_ALTERNATING) {
        printf("  topics    by alternating minimisation, l1 %g, l2 %g\n", (double)o->l1,
               (double)o->l2);
        return;
    }
    if (!drps_optim_is_newton(o->kind)) {
        printf("  optimizer %s, learning rate %g\n", drps_optim_name(o->kind), (double)o->lr);
        return;
    }
    printf("  optimizer %s, tolerance %g", drps_optim_name(o->kind), (double)o->tolerance);
    if (o->pairs) printf(", %s", drps_cli_counted(o->pairs, "pair"));
    printf(": %s after %s\n", ends[r->newton_end], drps_cli_counted(r->epochs_n, "pass"));
}

void train_report_text(const struct drps_train_result *r, const char *model, int details)
{
    const struct drps_phases *p = &r->phases;
    printf("\nmodel %s: %s, %s of parameters in %s", model, drps_cli_counted(r->rows, "row"),
           size(r->model_bytes), r->model_store);
    if (r->best_epoch) printf(", of epoch %llu", (unsigned long long)r->best_epoch);
    if (r->stopped_early && r->newton_end == DRPS_NEWTON_GOES_ON) printf(" (stopped early)");
    printf("\n  content   %016llx (a checksum of all parameters)\n",
           (unsigned long long)r->content);
    print_optimizer(r);
    if (*r->device)
        printf("  device    %s%s\n", r->device,
               r->device_emulated ? ": emulated, for tests, by the processor" : "");
    print_rows(r, details);
    print_forecast_time(r);
    print_limit(r, details);
    print_from(&r->from);
    print_delta(&r->delta);
    print_checkpoints(r);
    train_ranks_print(stdout, r->ranks, r->ranks_n, details);
    print_exchange(&r->exchange);
    print_common(&r->common);
    if (r->emulated.iterations) print_emulated(&r->emulated);
    if (details)
        printf(
            "  files     %s of the plan read; disk traffic of the process: %s read, %s written\n",
            size(r->plan_read_bytes), size(r->process_io.read_bytes),
            size(r->process_io.written_bytes));
    printf(
        "  time      %.2f s: reading the plan %.2f, waiting for rows %.2f, collecting rows %.2f, "
        "gradients %.2f, optimizer %.2f, test samples %.2f, writing the model %.2f\n",
        r->seconds, p->plan, p->wait_store, p->gather, p->compute, p->step, p->evaluate, p->export);
    if (p->hand_over > 0)
        printf("            handing rows over to other ranks, and waiting for theirs: %.2f s\n",
               p->hand_over);
    printf("  memory    %s at most, %s allowed\n", size(r->peak_rss_bytes),
           size(r->memory.limit_bytes));
}

static json_t *published_json(const struct drps_publish_result *r)
{
    return json_pack("{s:s, s:I, s:I, s:o, s:f}", "model_store", r->model_store, "rows",
                     (json_int_t)r->rows, "model_bytes", (json_int_t)r->model_bytes, "content",
                     drps_manifest_hex(r->content), "seconds", r->seconds);
}

int train_report_published(const struct drps_cli *cli, const struct drps_publish_result *r,
                           const char *model, struct drps_err *err)
{
    if (cli->json) return drps_cli_json_print(published_json(r), err);
    if (cli->log.level >= DRPS_LOG_INFO)
        printf("model %s: %s, %s of parameters in %s, %.2f s\n  content   %016llx (a checksum "
               "of all parameters)\n",
               model, drps_cli_counted(r->rows, "row"), size(r->model_bytes), r->model_store,
               r->seconds, (unsigned long long)r->content);
    return 0;
}
