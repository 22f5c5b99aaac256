/* drps-train: execute a plan. Argument parsing and printing; the work is engine/job.c. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/drps_engine.h"
#include "tools/cli.h"

enum {
    KEY_EPOCHS = DRPS_CLI_KEY,
    KEY_LR,
    KEY_L1,
    KEY_L2,
    KEY_OPTIMIZER,
    KEY_STORE,
    KEY_MEMORY,
    KEY_THREADS,
    KEY_LOCAL_STEPS,
    KEY_PATIENCE,
    KEY_SEED,
    KEY_INIT_SCALE,
    KEY_MODEL_STORE,
    KEY_PREFETCH,
    KEY_FORCE,
};

static const struct argp_option option_table[] = {
    {"output", 'o', "MODEL", 0, "Folder to make (required)", 1},
    {"epochs", KEY_EPOCHS, "E", 0, "Passes over the training samples (default 1)", 1},
    {"patience", KEY_PATIENCE, "P", 0,
     "Stop after P epochs without a better held-out loss and keep the best epoch's model", 1},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd, adagrad (default) or ftrl", 2},
    {"lr", KEY_LR, "RATE", 0,
     "Learning rate (default: by algorithm and optimizer; adagrad 0.05, for lmf 0.1)", 2},
    {"l1", KEY_L1, "X", 0, "L1 regularisation of weights and biases (default 0)", 2},
    {"l2", KEY_L2, "X", 0, "L2 regularisation (default 0)", 2},
    {"local-steps", KEY_LOCAL_STEPS, NULL, 0,
     "Step after every sample, on the batch's own copy of its rows", 2},
    {"seed", KEY_SEED, "N", 0, "Seed of the initial factors (default 1)", 2},
    {"init-scale", KEY_INIT_SCALE, "X", 0,
     "Factors start between -X and X (default 0.1 / sqrt(rank))", 2},
    {"store", KEY_STORE, "NAME", 0,
     "Where rows live: resident, rocksdb, leveldb, or auto (default): resident if they fit "
     "--memory",
     3},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 3},
    {"threads", KEY_THREADS, "N", 0, "Threads that compute (default 1: reproducible bit for bit)",
     3},
    {"prefetch-steps", KEY_PREFETCH, "N", 0,
     "Steps that a store on disk holds in memory, the current one included", 3},
    {"model-store", KEY_MODEL_STORE, "NAME", 0,
     "Database that the model is written as: rocksdb, leveldb", 3},
    {"force", KEY_FORCE, NULL, 0, "Replace MODEL if it exists", 4},
    {0},
};

struct options {
    struct drps_train_options train;
    const char *plan;
};

/* What the callbacks need. */
struct view {
    struct drps_cli *cli;
    const struct drps_plan_info *plan;
};

static const char *choice(struct drps_cli *cli, const char *arg, const char *const *names)
{
    return names[drps_cli_choice(cli, arg, names)];
}

static int parse_learning(struct drps_cli *cli, struct drps_train_options *o, int key, char *arg)
{
    static const char *const optimizers[] = {"sgd", "adagrad", "ftrl", NULL};
    switch (key) {
    case KEY_EPOCHS:
        o->epochs = drps_cli_count(cli, arg, 1, 1000000);
        return 0;
    case KEY_PATIENCE:
        o->patience = drps_cli_count(cli, arg, 1, 1000000);
        return 0;
    case KEY_OPTIMIZER:
        o->optimizer = choice(cli, arg, optimizers);
        return 0;
    case KEY_LR:
        o->lr = (float)drps_cli_real(cli, arg, DBL_MIN, 1e30);
        if (!(o->lr > 0))
            drps_cli_usage(cli, "'%s' is too small", arg); /* a double that no float holds */
        return 0;
    case KEY_L1:
        o->l1 = (float)drps_cli_real(cli, arg, 0, 1e30);
        return 0;
    case KEY_L2:
        o->l2 = (float)drps_cli_real(cli, arg, 0, 1e30);
        return 0;
    case KEY_LOCAL_STEPS:
        o->local_steps = 1;
        return 0;
    case KEY_SEED:
        o->seed = drps_cli_count(cli, arg, 0, INT64_MAX);
        return 0;
    case KEY_INIT_SCALE:
        o->init_scale = (float)drps_cli_real(cli, arg, DBL_MIN, 1e30);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse_running(struct drps_cli *cli, struct drps_train_options *o, int key, char *arg)
{
    static const char *const stores[] = {"auto", "resident", "rocksdb", "leveldb", NULL};
    static const char *const model_stores[] = {"rocksdb", "leveldb", NULL};
    switch (key) {
    case 'o':
        o->model_path = arg;
        return 0;
    case KEY_STORE:
        o->store = choice(cli, arg, stores);
        return 0;
    case KEY_MEMORY:
        o->memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    case KEY_THREADS:
        o->threads = (unsigned)drps_cli_count(cli, arg, 1, DRPS_TRAIN_THREADS_MAX);
        return 0;
    case KEY_PREFETCH:
        o->prefetch_steps = (int)drps_cli_count(cli, arg, 1, 8);
        return 0;
    case KEY_MODEL_STORE:
        o->model_store = choice(cli, arg, model_stores);
        return 0;
    case KEY_FORCE:
        o->replace = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    if (key == ARGP_KEY_ARG) {
        if (o->plan) drps_cli_usage(cli, "one plan at a time: '%s' is too much", arg);
        o->plan = arg;
        return 0;
    }
    if (key == ARGP_KEY_END) {
        if (!o->plan) drps_cli_usage(cli, "no plan: name the folder that drps-index made");
        if (!o->train.model_path) drps_cli_usage(cli, "-o MODEL is missing: the folder to make");
        return 0;
    }
    int rc = parse_learning(cli, &o->train, key, arg);
    return rc == ARGP_ERR_UNKNOWN ? parse_running(cli, &o->train, key, arg) : rc;
}

/* ---- While training ---- */

static void show_progress(void *ctx, const struct drps_train_progress *p)
{
    const struct view *v = ctx;
    drps_cli_progress(v->cli, "epoch %llu of %llu: %.0f %%, loss %.5f, %.0f samples/s",
                      (unsigned long long)p->epoch, (unsigned long long)p->epochs,
                      100.0 * (double)p->step / (double)p->steps, p->train_loss, p->samples_per_s);
}

static const char *size(uint64_t bytes)
{
    static char bufs[8][32];
    static unsigned at;
    at = (at + 1) % 8;
    return drps_size_format(bytes, bufs[at], sizeof(bufs[at]));
}

static void print_head(const struct view *v)
{
    printf("%5s  %10s", "epoch", "train loss");
    if (v->plan->eval_batches)
        printf(v->plan->classification ? "  %10s  %8s  %8s" : "  %10s  %10s", "test loss",
               v->plan->classification ? "AUC" : "RMSE", "accuracy");
    printf("  %11s  %8s  %10s  %10s  %7s\n", "samples/s", "seconds", "read", "written", "stalled");
}

static void print_epoch(void *ctx, const struct drps_epoch *e)
{
    const struct view *v = ctx;
    drps_cli_progress_end(v->cli);
    if (v->cli->json || v->cli->log.level < DRPS_LOG_INFO) return;
    if (e->epoch == 1) print_head(v);
    printf("%5llu  %10.6f", (unsigned long long)e->epoch, e->train_loss);
    if (v->plan->eval_batches && v->plan->classification)
        printf("  %10.6f  %8.5f  %8.5f", e->test.loss, e->test.auc, e->test.accuracy);
    else if (v->plan->eval_batches)
        printf("  %10.6f  %10.6f", e->test.loss, e->test.rmse);
    printf("  %11.0f  %8.2f  %10s  %10s  %5.1f %%\n", e->samples_per_s, e->seconds,
           size(e->read_bytes), size(e->written_bytes), 100 * e->stall_share);
    (void)fflush(stdout); /* a failure shows at the end */
}

/* ---- Results ---- */

static void print_disk(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    const struct drps_iostat *io = &s->io;
    if (!s->blocks_needed) return;
    const double epochs = r->epochs_n ? (double)r->epochs_n : 1;
    printf("  pool      %llu blocks, %s; %.1f %% of block uses found there, %.1f %% new\n",
           (unsigned long long)s->pool_blocks, size(s->pool_bytes),
           100.0 * (double)s->blocks_hit / (double)s->blocks_needed,
           100.0 * (double)s->blocks_created / (double)s->blocks_needed);
    printf("  reads     %llu (%s, %llu seeks), depth %.1f, p50 %.0f us, p99 %.0f us\n",
           (unsigned long long)io->reads, size(io->read_bytes), (unsigned long long)io->seeks,
           io->read_calls ? (double)io->queue_depth_sum / (double)io->read_calls : 0,
           drps_latency_quantile_us(&io->read_latency, 0.5),
           drps_latency_quantile_us(&io->read_latency, 0.99));
    printf("  writes    %llu (%s), p50 %.0f us, p99 %.0f us\n", (unsigned long long)io->writes,
           size(io->written_bytes), drps_latency_quantile_us(&io->write_latency, 0.5),
           drps_latency_quantile_us(&io->write_latency, 0.99));
    if (r->has_forecast && r->forecast.feasible)
        printf("  forecast  %s read, %s written, %llu I/Os an epoch; measured %s, %s, %.0f\n",
               size(r->forecast.read_bytes), size(r->forecast.written_bytes),
               (unsigned long long)r->forecast.ios,
               size((uint64_t)((double)io->read_bytes / epochs)),
               size((uint64_t)((double)io->written_bytes / epochs)),
               (double)(io->reads + io->writes) / epochs);
}

static void print_text(const struct drps_train_result *r, const char *model)
{
    const struct drps_phases *p = &r->phases;
    printf("\nmodel %s: %llu rows, %s of parameters in %s", model, (unsigned long long)r->rows,
           size(r->model_bytes), r->model_store);
    if (r->best_epoch) printf(", of epoch %llu", (unsigned long long)r->best_epoch);
    if (r->stopped_early) printf(" (stopped early)");
    printf("\n  content   %016llx\n", (unsigned long long)r->content);
    printf("  optimizer %s, rate %g\n", drps_optim_name(r->optim.kind), (double)r->optim.lr);
    printf("  store     %s, rows of %llu bytes\n", r->store, (unsigned long long)r->row_bytes);
    print_disk(r);
    printf("  plan      %s read; disk traffic of the process: %s read, %s written\n",
           size(r->plan_read_bytes), size(r->process_io.read_bytes),
           size(r->process_io.written_bytes));
    printf("  seconds   %.2f: plan %.2f, waiting for rows %.2f, gather %.2f, compute %.2f, step "
           "%.2f, evaluate %.2f, "
           "export %.2f\n",
           r->seconds, p->plan, p->wait_store, p->gather, p->compute, p->step, p->evaluate,
           p->export);
    printf("  memory    %s at most, %s allowed\n", size(r->peak_rss_bytes),
           size(r->memory.limit_bytes));
}

/* A NULL object is caught when it is printed. */
static void put(json_t *j, const char *key, json_t *value)
{
    (void)json_object_set_new(j, key, value);
}

static void put_count(json_t *j, const char *key, uint64_t value)
{
    put(j, key, drps_cli_json_count(value));
}

static void put_real(json_t *j, const char *key, double value)
{
    put(j, key, drps_cli_json_real(value));
}

static json_t *epoch_json(const struct drps_epoch *e)
{
    json_t *j = json_object();
    put_count(j, "epoch", e->epoch);
    put_real(j, "seconds", e->seconds);
    put_real(j, "samples_per_s", e->samples_per_s);
    put_real(j, "train_loss", e->train_loss);
    put_real(j, "test_loss", e->test.loss);
    put_real(j, "test_auc", e->test.auc);
    put_real(j, "test_accuracy", e->test.accuracy);
    put_real(j, "test_rmse", e->test.rmse);
    put_count(j, "read_bytes", e->read_bytes);
    put_count(j, "written_bytes", e->written_bytes);
    put_count(j, "reads", e->reads);
    put_count(j, "writes", e->writes);
    put_count(j, "seeks", e->seeks);
    put_count(j, "plan_read_bytes", e->plan_read_bytes);
    put_real(j, "hit_share", e->hit_share);
    put_real(j, "stall_share", e->stall_share);
    return j;
}

static json_t *store_json(const struct drps_store_stats *s)
{
    json_t *j = json_object();
    put_count(j, "steps", s->steps);
    put_count(j, "reads", s->io.reads);
    put_count(j, "writes", s->io.writes);
    put_count(j, "read_bytes", s->io.read_bytes);
    put_count(j, "written_bytes", s->io.written_bytes);
    put_count(j, "seeks", s->io.seeks);
    put_real(j, "queue_depth",
             s->io.read_calls ? (double)s->io.queue_depth_sum / (double)s->io.read_calls : NAN);
    put_real(j, "read_p50_us", drps_latency_quantile_us(&s->io.read_latency, 0.5));
    put_real(j, "read_p99_us", drps_latency_quantile_us(&s->io.read_latency, 0.99));
    put_real(j, "write_p50_us", drps_latency_quantile_us(&s->io.write_latency, 0.5));
    put_real(j, "write_p99_us", drps_latency_quantile_us(&s->io.write_latency, 0.99));
    put_count(j, "blocks_needed", s->blocks_needed);
    put_count(j, "blocks_hit", s->blocks_hit);
    put_count(j, "blocks_created", s->blocks_created);
    put_count(j, "blocks_evicted", s->blocks_evicted);
    put_real(j, "stall_seconds", (double)s->stall_ns * 1e-9);
    put_count(j, "stalled_steps", s->stalled_steps);
    put_count(j, "pool_bytes", s->pool_bytes);
    put_count(j, "pool_blocks", s->pool_blocks);
    return j;
}

static json_t *phases_json(const struct drps_phases *p)
{
    json_t *j = json_object();
    put_real(j, "plan", p->plan);
    put_real(j, "wait_store", p->wait_store);
    put_real(j, "gather", p->gather);
    put_real(j, "compute", p->compute);
    put_real(j, "step", p->step);
    put_real(j, "evaluate", p->evaluate);
    put_real(j, "export", p->export);
    return j;
}

static json_t *forecast_json(const struct drps_train_result *r)
{
    if (!r->has_forecast) return json_null();
    json_t *j = json_object();
    put_count(j, "memory_bytes", r->forecast.memory_bytes);
    put_count(j, "read_bytes", r->forecast.read_bytes);
    put_count(j, "written_bytes", r->forecast.written_bytes);
    put_count(j, "ios", r->forecast.ios);
    put(j, "feasible", json_boolean(r->forecast.feasible));
    return j;
}

static json_t *memory_json(const struct drps_budget *b)
{
    json_t *j = json_object();
    put_count(j, "limit_bytes", b->limit_bytes);
    for (size_t i = 0; i < b->n; i++)
        put_count(j, b->items[i].what, b->items[i].bytes);
    return j;
}

static int print_json(const struct drps_train_result *r, struct drps_err *err)
{
    json_t *j = json_object();
    json_t *epochs = json_array();
    put(j, "store", json_string(r->store));
    put_count(j, "rows", r->rows);
    put_count(j, "model_bytes", r->model_bytes);
    put_count(j, "row_bytes", r->row_bytes);
    put_count(j, "peak_rss_bytes", r->peak_rss_bytes);
    put_real(j, "seconds", r->seconds);
    for (size_t i = 0; i < r->epochs_n; i++)
        (void)json_array_append_new(epochs, epoch_json(&r->epochs[i])); /* as put() */
    put(j, "epochs", epochs);
    put_count(j, "best_epoch", r->best_epoch);
    put(j, "stopped_early", json_boolean(r->stopped_early));
    put(j, "interrupted", json_boolean(r->interrupted));
    put(j, "content", json_sprintf("%016llx", (unsigned long long)r->content));
    put(j, "model_store", json_string(r->model_store));
    put(j, "optimizer", json_string(drps_optim_name(r->optim.kind)));
    put_real(j, "lr", (double)r->optim.lr);
    put(j, "phase_seconds", phases_json(&r->phases));
    put(j, "io", store_json(&r->store_stats));
    put(j, "forecast", forecast_json(r));
    put_count(j, "plan_read_bytes", r->plan_read_bytes);
    put_count(j, "process_read_bytes", r->process_io.read_bytes);
    put_count(j, "process_written_bytes", r->process_io.written_bytes);
    put(j, "memory", memory_json(&r->memory));
    return drps_cli_json_print(j, err);
}

static int run(struct drps_cli *cli, struct options *o, struct drps_err *err)
{
    struct drps_plan *plan;
    struct drps_train_result result;

    int rc = drps_plan_open(drps_io_os(), o->plan, &plan, err);
    if (rc < 0) return rc;
    struct view view = {cli, &plan->info};
    o->train.stop = drps_cli_stop();
    o->train.log = &cli->log;
    o->train.on_epoch = print_epoch;
    o->train.on_progress = show_progress;
    o->train.ctx = &view;
    rc = drps_train_run(plan, &o->train, &result, err);
    drps_cli_progress_end(cli);
    if (rc == 0 || rc == DRPS_E_INTERRUPTED) {
        int printed = 0;
        if (cli->json)
            printed = print_json(&result, err);
        else if (cli->log.level >= DRPS_LOG_INFO)
            print_text(&result, o->train.model_path);
        if (rc == 0) rc = printed;
    }
    drps_train_result_free(&result);
    drps_plan_close(plan);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-train",
        .args_doc = "PLAN -o MODEL",
        .doc = "Train the model of a plan that drps-index made, in bounded memory.\v"
               "Prints one line an epoch. When interrupted (Ctrl-C), the current step is finished "
               "and the model so "
               "far is written; the exit status is then 130.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.train = {.epochs = 1, .seed = 1}};
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    drps_cli_start(&cli, &tool, &o, argc, argv);
    return drps_cli_finish(&cli, run(&cli, &o, &err), &err);
}
