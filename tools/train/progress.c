/* The lines of an epoch, and the progress line. */
#include "tools/train/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/plan/drps_algorithm.h"
#include "tools/drps_progress.h"

enum { SIZE_BYTES = 32 };

static void show_progress(void *ctx, const struct drps_train_progress *t)
{
    const struct train_progress *p = ctx;
    const uint64_t samples = p->plan->samples + p->plan->test_samples;
    char what[96], loss[32], time[DRPS_PROGRESS_TIME], all[DRPS_PROGRESS_TIME + 8];
    if (isnan(t->train_loss)) /* rank 0 has trained no sample, or has none */
        (void)snprintf(loss, sizeof(loss), "training");
    else
        (void)snprintf(loss, sizeof(loss), "loss %.4f", t->train_loss);
    (void)snprintf(what, sizeof(what), "epoch %llu of %llu, %s", (unsigned long long)t->epoch,
                   (unsigned long long)t->epochs, t->evaluates ? "test samples" : loss);
    struct drps_progress line = {
        .what = what, .unit = "samples", .total = samples, .seconds = t->seconds};
    line.done = (uint64_t)((double)samples * (double)t->step / (double)t->steps);
    const double left = drps_progress_left(&line);
    (void)snprintf(
        all, sizeof(all), "%s of all",
        drps_progress_time(left + (double)(t->epochs - t->epoch) * (t->seconds + left), time));
    if (t->epoch < t->epochs) line.more = all;
    drps_progress_show(p->cli, &line);
}

static void show_writing(void *ctx, const char *what, uint64_t bytes, uint64_t all_bytes)
{
    struct train_progress *p = ctx;
    if (p->writing != what) p->writing_ns = drps_clock_ns();
    p->writing = what;
    drps_progress_show(p->cli,
                       &(struct drps_progress){.what = what,
                                               .unit = DRPS_PROGRESS_BYTES,
                                               .done = bytes,
                                               .total = all_bytes,
                                               .seconds = drps_seconds_since(p->writing_ns)});
}

static void note_checkpoint(void *ctx, const struct drps_train_cut *cut)
{
    const struct train_progress *p = ctx;
    if (p->attempt) drps_attempt_reached(p->attempt, cut);
}

/* Only a squared loss has the root of a mean square beside it, and several scores of a number have
 * no class. */
static int has_rmse(const struct train_progress *p)
{
    return strcmp(p->plan->loss, drps_loss_name(DRPS_LOSS_SQUARED)) == 0;
}

/* Returns 1 for implicit feedback, where items are placed among those that were drawn against
 * them. */
static int has_places(const struct train_progress *p)
{
    return p->plan->negatives.each > 0;
}

/* Losses are of a token. */
static int has_perplexity(const struct train_progress *p)
{
    return p->plan->sequences.most > 0;
}

static int has_accuracy(const struct train_progress *p)
{
    return p->plan->classification && !p->plan->outputs;
}

static void print_head(const struct train_progress *p, const struct drps_epoch *e)
{
    printf("%5s  %10s", "epoch", "train loss");
    if (e->is_newton) printf("  %16s  %10s  %11s", "objective", "gradient", "step");
    if (p->plan->eval_batches) printf("  %10s", "test loss");
    if (p->plan->eval_batches && has_perplexity(p))
        printf("  %10s  %8s", "perplexity", "accuracy");
    else if (p->plan->eval_batches && has_accuracy(p))
        printf("  %8s  %8s", "AUC", "accuracy");
    if (p->plan->eval_batches && has_rmse(p)) printf("  %10s", "RMSE");
    if (p->plan->eval_batches && has_places(p))
        printf("  %8s  %9s  %8s", "AUC", "recall@10", "ndcg@10");
    printf("  %11s  %8s  %10s  %10s  %7s\n", "samples/s", "seconds", "rows read", "written",
           "waited");
}

/* Returns the area under the ROC curve as text; "-" where there is none, as with more than two
 * classes. */
static const char *auc_text(double auc, char text[SIZE_BYTES])
{
    (void)snprintf(text, SIZE_BYTES, isnan(auc) ? "-" : "%.5f", auc);
    return text;
}

/* What every loss is to be compared with: that of the best constant. */
static void print_constant(const struct train_progress *p, const struct drps_epoch *e)
{
    if (isnan(p->plan->constant_loss)) return;
    printf("const  %10.6f", p->plan->constant_loss);
    if (e->is_newton) printf("  %16s  %10s  %11s", "", "", "");
    if (!isnan(p->plan->test_constant_loss)) printf("  %10.6f", p->plan->test_constant_loss);
    printf("\n");
}

static void print_epoch(void *ctx, const struct drps_epoch *e)
{
    struct train_progress *p = ctx;
    char read[SIZE_BYTES], written[SIZE_BYTES], auc[SIZE_BYTES];
    drps_cli_progress_end(p->cli);
    if (p->cli->json || p->cli->log.level < DRPS_LOG_INFO) return;
    if (!p->epochs++) {
        if (p->plan->eval_batches && has_places(p))
            printf("test: each item among %u that its user has not chosen, drawn %s\n",
                   p->plan->negatives.test,
                   p->plan->negatives.by_popularity ? "by popularity" : "evenly");
        print_head(p, e);
        print_constant(p, e);
    }
    printf("%5llu  %10.6f", (unsigned long long)e->epoch, e->train_loss);
    if (e->is_newton)
        printf("  %16.10g  %10.4g  %10.4g%s", e->newton.objective, e->newton.gradient_norm,
               e->newton.step, e->newton.accepted ? " " : "-");
    if (p->plan->eval_batches) printf("  %10.6f", e->test.loss);
    if (p->plan->eval_batches && has_perplexity(p))
        printf("  %10.3f  %8.5f", exp(e->test.loss), e->test.accuracy);
    else if (p->plan->eval_batches && has_accuracy(p))
        printf("  %8s  %8.5f", auc_text(e->test.auc, auc), e->test.accuracy);
    if (p->plan->eval_batches && has_rmse(p)) printf("  %10.6f", e->test.rmse);
    if (p->plan->eval_batches && has_places(p))
        printf("  %8s  %9.5f  %8.5f", auc_text(e->test.auc, auc), e->test.recall, e->test.ndcg);
    printf("  %11.0f  %8.2f  %10s  %10s  %5.1f %%\n", e->samples_per_s, e->seconds,
           drps_size_format(e->read_bytes, read, sizeof(read)),
           drps_size_format(e->written_bytes, written, sizeof(written)), 100 * e->stall_share);
    (void)fflush(stdout); /* a failure is told at the end of main */
}

void train_progress_follow(struct train_progress *p, struct drps_train_options *options)
{
    options->on_epoch = print_epoch;
    options->on_progress = show_progress;
    options->on_write = show_writing;
    options->on_checkpoint = note_checkpoint;
    options->ctx = p;
}

void train_progress_publishing(void *ctx, uint64_t bytes, uint64_t all_bytes)
{
    show_writing(ctx, "making the model", bytes, all_bytes);
}
