/*
 * Time to a loss, by mode: real training of a plan for several workers, all ranks as threads of
 * this process, with iteration times that are emulated: a worker that has its parameters sleeps
 * before it computes. So times are those of as many machines, as long as the ranks' real work is
 * small beside the sleep; the parameters grow stale meanwhile as they would.
 *
 *   bench_async PLAN MODEL [--ms 20] [--epochs 10] [--timing NAME] [--seed 1]
 *               [--lr RATE] [--modes "bsp asp ssp:3 wsp"]
 *
 * Timings as in sim_sched, in means of --ms: homogeneous (+- 5 %), straggler (worker 0 takes three
 * times as long, +- 5 %), pauses (4 % of the iterations take 5 to 10 times as long), tail (Pareto,
 * alpha 2). The same for every mode. MODEL is written, and replaced.
 *
 * Printed for each mode: seconds of training and of the whole run, the workers' waiting share,
 * batches claimed, the largest lag, and after every epoch the seconds so far and the held-out loss.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "engine/drps_ranks.h"

enum { EPOCHS_MAX = 1000 };

struct setting {
    const char *plan, *model, *timing, *modes;
    uint64_t ms, epochs, seed;
    float lr; /* 0: the default */
    uint32_t workers;
};

struct run {
    const struct setting *setting;
    uint64_t iterations[DRPS_PLAN_WORKERS_MAX]; /* of each worker; its own thread alone */
    double loss[EPOCHS_MAX], at[EPOCHS_MAX];    /* held-out; seconds of the epochs so far */
    size_t epochs;
};

static void die(const char *what, const struct drps_err *err)
{
    fprintf(stderr, "bench_async: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

/* As sim_sched's. */
static double iteration_ms(const struct setting *g, uint32_t k, uint64_t i)
{
    const uint64_t key = g->seed * 1000003 + k;
    const double u = drps_unit_double(drps_rng_at(key, 2 * i));
    const double v = drps_unit_double(drps_rng_at(key, 2 * i + 1));
    double x = .95 + .1 * u;
    if (strcmp(g->timing, "straggler") == 0 && k == 0) x *= 3;
    if (strcmp(g->timing, "pauses") == 0 && v < .04) x *= 5 + v / .04 * 5;
    if (strcmp(g->timing, "tail") == 0) x = .5 / sqrt(1 - u);
    return x * (double)g->ms;
}

static void take_time(void *ctx, const struct drps_train_batch *b)
{
    struct run *run = ctx;
    if (b->moment != DRPS_BATCH_PULLED) return;
    const double ms = iteration_ms(run->setting, b->rank, run->iterations[b->rank]++);
    struct timespec left = {.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(fmod(ms, 1e3) * 1e6)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

static void keep_epoch(void *ctx, const struct drps_epoch *e)
{
    struct run *run = ctx;
    const double before = run->epochs ? run->at[run->epochs - 1] : 0;
    run->at[run->epochs] = before + e->seconds;
    run->loss[run->epochs++] = e->test.loss;
}

/* "ssp:3": a mode and its staleness. */
static void parse_mode(char *name, struct drps_train_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    char *colon = strchr(name, ':');
    if (colon) *colon = '\0';
    o->staleness = colon ? strtoull(colon + 1, NULL, 10) : 0;
    if (drps_sched_mode_parse(name, &o->sync, &err) < 0) die("--modes", &err);
}

static void print_run(const char *mode, const struct run *run, const struct drps_train_result *r)
{
    double waiting = 0;
    uint64_t claimed = 0, lag = 0;
    for (size_t i = 0; i < r->ranks_n; i++) {
        waiting += r->ranks[i].waiting_share / (double)r->ranks_n;
        claimed += r->ranks[i].claimed;
        if (r->ranks[i].lag_max > lag) lag = r->ranks[i].lag_max;
    }
    printf("%s %s %.3f %.3f %" PRIu64 " %" PRIu64, run->setting->timing, mode,
           run->at[run->epochs - 1], waiting, claimed, lag);
    for (size_t e = 0; e < run->epochs; e++)
        printf(" %.3f:%.5f", run->at[e], run->loss[e]);
    printf("\n");
    (void)fflush(stdout);
}

static void run_mode(const struct setting *g, const char *mode)
{
    struct run run = {.setting = g};
    struct drps_train_result result;
    struct drps_err err = DRPS_ERR_INIT;
    char name[64];
    struct drps_train_options train = {.model_path = g->model,
                                       .replace = 1,
                                       .epochs = g->epochs,
                                       .seed = g->seed,
                                       .lr = g->lr,
                                       .store = "resident",
                                       .on_epoch = keep_epoch,
                                       .on_batch = take_time,
                                       .ctx = &run};
    const struct drps_ranks_options options = {
        .plan = g->plan, .train = &train, .transport = DRPS_RANKS_INPROC};
    (void)snprintf(name, sizeof(name), "%s", mode); /* or cut: then it is no mode */
    parse_mode(name, &train);
    if (drps_ranks_run_local(&options, g->workers, &result, &err) < 0) die(mode, &err);
    print_run(mode, &run, &result);
    drps_train_result_free(&result);
}

static void usage(void)
{
    fprintf(stderr,
            "usage: bench_async PLAN MODEL [--ms 20] [--epochs 10] [--timing homogeneous|"
            "straggler|pauses|tail] [--seed 1] [--lr RATE] [--modes \"bsp asp ssp:3 wsp\"]\n");
    exit(2);
}

static void parse(int argc, char **argv, struct setting *g)
{
    static const struct option options[] = {{"ms", required_argument, NULL, 'm'},
                                            {"epochs", required_argument, NULL, 'e'},
                                            {"timing", required_argument, NULL, 't'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"modes", required_argument, NULL, 'M'},
                                            {"lr", required_argument, NULL, 'l'},
                                            {0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'm')
            g->ms = strtoull(optarg, NULL, 10);
        else if (c == 'e')
            g->epochs = strtoull(optarg, NULL, 10);
        else if (c == 't')
            g->timing = optarg;
        else if (c == 's')
            g->seed = strtoull(optarg, NULL, 10);
        else if (c == 'l')
            g->lr = strtof(optarg, NULL);
        else if (c == 'M')
            g->modes = optarg;
        else
            usage();
    }
    if (argc - optind != 2 || !g->epochs || g->epochs > EPOCHS_MAX) usage();
    g->plan = argv[optind];
    g->model = argv[optind + 1];
}

int main(int argc, char **argv)
{
    struct setting g = {.timing = "homogeneous",
                        .modes = "bsp asp ssp:1 ssp:3 ssp:10 wsp",
                        .ms = 20,
                        .epochs = 10,
                        .seed = 1};
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    parse(argc, argv, &g);
    if (drps_plan_open(drps_io_os(), g.plan, &plan, &err) < 0) die(g.plan, &err);
    g.workers = plan->info.ranks.workers;
    if (g.workers < 2 || !plan->info.eval_batches)
        die("the plan must be for several workers, with held-out samples", NULL);
    drps_plan_close(plan);
    char *modes = strdup(g.modes), *rest = modes;
    if (!modes) die("no memory", NULL);
    printf("timing mode seconds waiting claimed lag epochs\n");
    for (char *mode; (mode = strsep(&rest, " "));)
        if (*mode) run_mode(&g, mode);
    free(modes);
    return 0;
}
