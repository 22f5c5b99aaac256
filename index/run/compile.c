/*
 * A run of drps-index (drps_index.h): its folders are made, the table of phases is walked from its
 * first to its last, and the plan gets its name. What is said of progress, and the flag that ends
 * the run, go through index/drps_progress.h.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/drps_index.h"
#include "index/ranks/drps_placement.h"
#include "index/run/run.h"
#include "index/watch/drps_index_watch.h"
#include "storage/io/drps_probe.h"
#include "storage/relay/drps_relay.h"

/* Whole sectors of 512 bytes. Of 512 bytes to 8 KiB, 2 cost a solid-state disk least or little more
 * than least, for rows of one float to 16 factors (bench/RESULTS.md). */
enum { BLOCK_BYTES = 2048 };

/* ---- Beginning and end ---- */

/*
 * What the disk says. A block that is used is read and written again: two requests and its bytes
 * twice. Costs count one way, so both are means of reading and writing; what is compared stays the
 * same. Source: DRPS, section 4, Eq. 1.
 */
static int calibrate(struct index_run *r, struct drps_err *err)
{
    struct drps_blocks_options *o = &r->options.blocks;
    struct drps_disk_times t;
    struct drps_disk_cost cost;
    char block[32], chunk[32];

    int rc = drps_disk_measure(r->io, o->calibrate, r->info->block_bytes, drps_relay_chunk,
                               drps_clock_ns, &t, err);
    if (rc < 0) return rc;
    drps_disk_cost_of(&t, &cost);
    o->seek_ns = (uint64_t)((cost.read_seek_ns + cost.write_seek_ns) / 2);
    o->transfer_bps = (uint64_t)(2 / (1 / cost.read_bps + 1 / cost.write_bps));
    if (!o->seek_ns) o->seek_ns = 1;
    if (!o->transfer_bps) o->transfer_bps = 1;
    r->info->speeds = (struct drps_speeds){.read_request_ns = cost.read_seek_ns,
                                           .write_request_ns = cost.write_seek_ns,
                                           .read_bps = cost.read_bps,
                                           .write_bps = cost.write_bps,
                                           .pace = t.pace};
    drps_log(r->options.log, DRPS_LOG_INFO,
             "%s: random requests of %s take %.1f us to read, %.1f us to write; long ones of %s "
             "%.1f and %.1f us (%.0f and %.0f MB/s); in the mean a request costs %.1f us, "
             "and its bytes go at %.0f MB/s",
             o->calibrate, drps_size_format(t.random_bytes, block, sizeof(block)),
             t.random_read_ns / 1e3, t.random_write_ns / 1e3,
             drps_size_format(t.long_bytes, chunk, sizeof(chunk)), t.long_read_ns / 1e3,
             t.long_write_ns / 1e3, cost.read_bps / 1e6, cost.write_bps / 1e6,
             (double)o->seek_ns / 1e3, (double)o->transfer_bps / 1e6);
    drps_log(r->options.log, DRPS_LOG_INFO,
             "%s: reads of 4 to 64 KiB far apart beside long writes go at %.0f MB/s, both ways "
             "together, and each read takes %.1f us more",
             o->calibrate, t.pace.bps / 1e6, t.pace.request_ns / 1e3);
    return 0;
}

static int make_folder(struct index_run *r, const char *path, struct drps_err *err)
{
    int rc = r->io->ops->mkdir(r->io->ctx, path, 0777);
    return rc < 0 ? drps_err_set(err, rc, "cannot create %s: %s", path, drps_err_name(rc)) : 0;
}

/* Make the folders of the run, and parts to be filled in. */
static int make_folders(struct index_run *r, struct drps_err *err)
{
    struct swap_ranks *ranks = r->options.ranks;
    const int placed = ranks || drps_placement_renumbers(r->options.partition) ||
                       drps_run_numbers_by_lane(&r->options);
    r->parts_n = drps_run_ranks(&r->options).count;
    r->own_first = ranks ? ranks->rank : 0;
    r->own_end = ranks ? ranks->rank + 1 : r->parts_n;
    r->parts = calloc(r->parts_n, sizeof(*r->parts));
    r->scratch = drps_path_join(r->stage.dir, DRPS_FILE_SCRATCH);
    r->whole = !ranks ? strdup(r->stage.dir)
               : drps_placement_renumbers(r->options.partition)
                   ? drps_path_join(r->scratch, DRPS_FILE_PLACED)
                   : drps_path_join(r->scratch, DRPS_FILE_LAID);
    if (ranks) ranks->dir = r->scratch;
    if (r->scratch)
        r->laid = placed ? drps_path_join(r->scratch, DRPS_FILE_LAID) : strdup(r->stage.dir);
    if (!r->parts || !r->laid || !r->whole)
        return drps_err_set(err, -ENOMEM, "no memory for a plan's parts");
    r->batch_dir = drps_block_builder_find(r->options.blocks.by)->orders ? r->scratch : r->laid;
    int rc = make_folder(r, r->scratch, err);
    if (rc == 0 && placed) rc = make_folder(r, r->laid, err);
    return rc == 0 && ranks && strcmp(r->whole, r->laid) != 0 ? make_folder(r, r->whole, err) : rc;
}

static int open_whole(const struct index_run *r, const char *dir, struct drps_plan **plan_out,
                      struct drps_err *err)
{
    int rc = drps_plan_open(r->io, dir, plan_out, err);
    if (rc < 0 || (*plan_out)->info.ranks.rank == DRPS_PLAN_WHOLE) return rc;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s is the part of one rank: name the folder of the whole plan", dir);
}

/* Open the plan that the run begins with, if any, which settles most options. */
static int open_from(struct index_run *r, struct drps_err *err)
{
    if (!r->options.from_plan) return 0;
    int rc = open_whole(r, r->options.from_plan, &r->from, err);
    if (rc < 0) return rc;
    if (drps_plan_circulates(&r->from->info))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the rows of %s circulate between its %u workers: make a plan for "
                            "others from the data",
                            r->options.from_plan, r->from->info.ranks.count);
    drps_run_take_options(&r->from->info, &r->options);
    return 0;
}

/* Open the plan whose rows keep their numbers, if any. */
static int open_base(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    if (!r->options.base) return 0;
    int rc = open_whole(r, r->options.base, &r->base, err);
    if (rc == 0) rc = drps_run_take_base(r->base, &r->options, err);
    if (rc < 0) return rc;
    memcpy(info->base, r->base->info.id, sizeof(info->base));
    info->base_rows = r->base->info.rows;
    return 0;
}

/* Where several machines have the same files, each of them reads a share: settles which. */
static int share_inputs(struct index_run *r, struct drps_err *err)
{
    struct drps_index_options *o = &r->options;
    int rc = drps_together_share(o->ranks, r->io, o->inputs, o->inputs_n, &r->shares[0], err);
    if (rc == 0 && o->tests_n)
        rc = drps_together_share(o->ranks, r->io, o->tests, o->tests_n, &r->shares[1], err);
    o->share = &r->shares[0];
    o->test_share = &r->shares[1];
    return rc;
}

static int begin(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    int rc = open_from(r, err);
    if (rc == 0) rc = open_base(r, err);
    if (rc == 0) rc = drps_run_take_net(r, err);
    if (rc == 0) rc = drps_run_check_options(&r->options, &r->layers, err);
    if (rc < 0) return rc;
    drps_index_watch_memory(r->progress.watch, r->options.memory_bytes);
    if (r->options.ranks) rc = drps_together_begin(r->options.ranks, &r->options, &r->out, err);
    if (rc == 0 && r->options.ranks && r->options.shared) rc = share_inputs(r, err);
    if (rc < 0) return rc;
    info->block_bytes = r->options.blocks.bytes ? r->options.blocks.bytes : BLOCK_BYTES;
    if (r->options.blocks.calibrate) rc = calibrate(r, err);
    if (rc == 0)
        rc = drps_stage_begin(&r->stage, r->io, r->out ? r->out : r->options.out, &drps_plan_kind,
                              r->out || r->options.force, err);
    if (rc == 0) rc = drps_index_watch_enter_folder(r->progress.watch, r->stage.dir, err);
    if (rc < 0) return rc;
    (void)snprintf(info->algo, sizeof(info->algo), "%s", r->options.algo);
    (void)snprintf(info->order, sizeof(info->order), "%s",
                   r->options.order ? r->options.order : "shuffled");
    info->factors = r->options.factors;
    const struct drps_algorithm *a = r->options.algorithm;
    info->outputs = r->options.outputs;
    info->dim = info->outputs ? info->outputs : drps_algorithm_dim(a, info->factors, 0);
    info->normalized = drps_algorithm_has_fields(a) && !r->options.not_normalized;
    /* With adagrad's state; what is alternated has none. */
    info->row_bytes = info->dim * sizeof(float) * (drps_algorithm_is_topic(a) ? 1 : 2);
    info->seed = r->options.seed;
    info->hash_seed = r->options.reader.hash_seed;
    info->hashing = r->options.hashing;
    info->memory_bytes = r->options.memory_bytes;
    info->command = r->options.command;
    info->source = r->options.source;
    return make_folders(r, err);
}

/* Sums up the files of a plan that are there. */
static uint64_t folder_bytes(const char *dir)
{
    uint64_t sum = 0;
    for (const struct drps_owned *file = drps_plan_kind.owned; file->name; file++) {
        char path[PATH_MAX];
        struct stat st;
        if (file->inside) continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, file->name);
        if (stat(path, &st) == 0) sum += (uint64_t)st.st_size;
    }
    return sum;
}

/* Where several machines make the plan, gathers from each what its folder takes, and what it has
 * sent to the others. */
static int measure_ranks(struct index_run *r, struct drps_err *err)
{
    struct swap_ranks *ranks = r->options.ranks;
    const uint64_t mine[3] = {folder_bytes(r->parts[ranks->rank].dir), ranks->sent_bytes,
                              ranks->forecast_bytes};
    uint64_t *all;
    int rc = drps_swap_gather(ranks, mine, 3, &all, err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        const uint64_t *of = &all[3 * (size_t)i];
        r->result->ranks[i].plan_bytes = of[0];
        r->result->ranks[i].sent_bytes = of[1];
        r->result->ranks[i].sent_forecast = of[2];
        r->result->plan_bytes += of[0];
    }
    free(all);
    return rc;
}

static int measure_plan(struct index_run *r, struct drps_err *err)
{
    int rc = 0;
    r->result->plan_bytes = 0;
    if (r->options.ranks) rc = measure_ranks(r, err);
    for (uint32_t i = 0; i < r->parts_n && !r->options.ranks; i++) {
        const uint64_t bytes = folder_bytes(r->parts[i].dir);
        if (r->parts_n > 1) r->result->ranks[i].plan_bytes = bytes;
        r->result->plan_bytes += bytes;
    }
    if (r->parts_n > 1) r->result->plan_bytes += folder_bytes(r->stage.dir);
    return rc;
}

/* Where several machines make the plan, fills in the parts of the others: their numbers and
 * forecasts. */
static int share_parts(struct index_run *r, struct drps_err *err)
{
    const struct part *mine = &r->parts[r->own_first];
    struct drps_plan_info *info = drps_array_new(r->parts_n, sizeof(*info));
    struct drps_forecast *forecast =
        drps_array_new((size_t)r->parts_n * DRPS_FORECASTS, sizeof(*forecast));
    int rc = info && forecast
                 ? drps_together_share_part(r->options.ranks, &mine->info, mine->forecast,
                                            mine->forecasts, info, forecast, err)
                 : drps_err_set(err, -ENOMEM, "no memory for a plan's parts");
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        struct part *part = &r->parts[i];
        if (part == mine) continue;
        part->info = info[i];
        part->forecasts = mine->forecasts;
        memcpy(part->forecast, &forecast[(size_t)i * DRPS_FORECASTS],
               part->forecasts * sizeof(*forecast));
    }
    free(info);
    free(forecast);
    return rc;
}

/* Returns 1 if rank 0 has made the plan in this folder: rank 0 then removes it, too, if the run
 * fails. */
static int has_rank_0(const char *out)
{
    char dir[DRPS_PLAN_PATH_BYTES];
    struct drps_err ignored = DRPS_ERR_INIT;
    return drps_plan_rank_dir(out, 0, dir, &ignored) == 0 && access(dir, F_OK) == 0;
}

/* Gives the folder of this machine, one of several, its name, in step with the others. *made_out is
 * set to the folder that has its name so far, and is to be removed if another step fails. */
static int commit_together(struct index_run *r, const char **made_out, struct drps_err *err)
{
    const struct swap_ranks *ranks = r->options.ranks;
    const char *path = ranks->rank ? r->out : r->options.out;
    int rc = drps_together_await_all(ranks, err);
    if (rc == 0 && ranks->rank) rc = drps_stage_commit(&r->stage, err);
    if (rc == 0 && ranks->rank) *made_out = path;
    if (rc == 0) rc = drps_together_await_all(ranks, err); /* all folders are whole, on disk */
    if (rc == 0 && !ranks->rank) rc = drps_stage_commit(&r->stage, err);
    if (rc == 0 && !ranks->rank) *made_out = path;
    if (rc == 0) rc = drps_together_await_all(ranks, err);
    if (rc == 0 && ranks->rank)
        rc = drps_together_join(ranks, r->io, r->out, r->options.out, r->options.force, err);
    if (rc < 0) return rc;
    if (ranks->rank) *made_out = has_rank_0(r->options.out) ? NULL : r->options.out;
    return drps_together_await_all(ranks, err);
}

/* Give the plan its name. Where several machines make it, each has the folder of its own rank and
 * plan.json; if one machine fails, none keeps them. */
static int commit(struct index_run *r, struct drps_err *err)
{
    const char *made = NULL;
    struct drps_err left = DRPS_ERR_INIT;
    if (!r->options.ranks) return drps_stage_commit(&r->stage, err);
    const int rc = commit_together(r, &made, err);
    const struct drps_io io = {.ops = r->io->ops, .ctx = r->io->ctx}; /* interrupted or not */
    if (rc < 0 && made && drps_stage_remove(&io, made, &drps_plan_kind, &left) < 0)
        drps_log(r->options.log, DRPS_LOG_WARN, "%s", left.text);
    return rc;
}

static int publish(struct index_run *r, struct drps_err *err)
{
    int rc = drps_run_price(r, err);
    if (rc == 0 && r->options.ranks) rc = share_parts(r, err);
    if (rc < 0) return rc;
    drps_parts_sum(r->parts, r->parts_n, r->result);
    if (r->info->classes)
        (void)drps_classes_text(r->info->classes, r->result->classes, sizeof(r->result->classes));
    if (r->layers.n && drps_plan_layers(r->info, &r->layers, NULL) == 0)
        r->result->net_parameters = r->layers.floats;
    for (uint32_t i = r->own_first; i < r->own_end && rc == 0; i++)
        rc = drps_part_save(&r->parts[i], r->io, r->fields, !drps_run_forecasts_later(r), err);
    if (rc == 0 && r->parts_n > 1 && (!r->options.ranks || !r->options.ranks->rank))
        rc = drps_plan_save(r->io, r->stage.dir, r->info, r->fields, NULL, err);
    if (rc == 0 && r->options.ranks)
        rc = drps_together_copy(r->options.ranks, r->stage.dir, DRPS_FILE_MANIFEST, err);
    if (rc == 0) rc = drps_io_remove_tree(r->io, r->scratch, err);
    if (rc == 0) rc = measure_plan(r, err);
    drps_index_watch_leave_folder(r->progress.watch);
    if (rc == 0) rc = commit(r, err);
    if (r->stage.left.code) drps_log(r->options.log, DRPS_LOG_WARN, "%s", r->stage.left.text);
    return rc;
}

/* ---- Phases ---- */

static int reads(const struct index_run *r)
{
    return !r->options.from_plan;
}

static int takes(const struct index_run *r)
{
    return !reads(r);
}

static int orders_by_rows(const struct index_run *r)
{
    const struct drps_index_options *o = &r->options;
    return reads(r) && (drps_run_is_grid(o) || drps_run_is_micro(o) || drps_run_may_mix(o) ||
                        drps_run_assigns_samples(o) || o->ranks);
}

static int draws(const struct index_run *r)
{
    return reads(r) && drps_algorithm_draws(r->options.algorithm);
}

static int splits(const struct index_run *r)
{
    return drps_run_ranks(&r->options).count > 1;
}

/* Blocks of a part are found with it. */
static int is_whole(const struct index_run *r)
{
    return r->parts_n == 1;
}

static int split(struct index_run *r, struct drps_err *err)
{
    return drps_run_circulates(&r->options) ? drps_phase_circulate(r, err)
                                            : drps_phase_split(r, err);
}

/* The forecast is left for later where all rows fit, which is known once they are counted. */
static int forecasts(const struct index_run *r)
{
    return !r->options.no_forecast && !drps_run_forecasts_later(r);
}

static int always(const struct index_run *r)
{
    (void)r;
    return 1;
}

/* Windows are cut beside the phase before them, unless a forecast is made: that takes longer, and
 * runs beside them. Either pair finds room in the memory. */
static int is_without_forecast(const struct index_run *r)
{
    return !forecasts(r);
}

static const struct phase {
    const char *name;
    int (*run)(struct index_run *r, struct drps_err *err);
    int (*applies)(const struct index_run *r); /* NULL: always */
    /* Whether it runs beside the phase before it, of which it needs nothing, in a thread; NULL: it
     * does not. */
    int (*beside)(const struct index_run *r);
} phases[DRPS_INDEX_PHASES] = {
    [DRPS_PHASE_PARSE] = {"parse", drps_phase_parse, reads, NULL},
    [DRPS_PHASE_PLACE] = {"place", drps_phase_place, reads, NULL},
    [DRPS_PHASE_DRAW] = {"draw", drps_phase_draw, draws, NULL},
    [DRPS_PHASE_ORDER] = {"order", drps_phase_order, orders_by_rows, NULL},
    [DRPS_PHASE_BATCH] = {"batch", drps_phase_batch, reads, NULL},
    [DRPS_PHASE_BLOCK] = {"block", drps_phase_block, reads, NULL},
    [DRPS_PHASE_TAKE] = {"take", drps_phase_take, takes, NULL},
    [DRPS_PHASE_SPLIT] = {"split", split, splits, NULL},
    [DRPS_PHASE_USES] = {"uses", drps_phase_uses, is_whole, NULL},
    [DRPS_PHASE_WINDOW] = {"window", drps_phase_window, NULL, is_without_forecast},
    [DRPS_PHASE_FORECAST] = {"forecast", drps_phase_forecast, forecasts, always},
};

const char *drps_index_phase_name(enum drps_index_phase phase)
{
    return phases[phase].name;
}

static int phase_applies(const struct index_run *r, unsigned phase)
{
    return phase < DRPS_INDEX_PHASES && (!phases[phase].applies || phases[phase].applies(r));
}

/* A phase in progress, in whichever thread. */
struct running {
    struct index_run *r;
    unsigned phase;
    int rc;
    struct drps_err err;
};

static void *run_phase(void *arg)
{
    struct running *p = arg;
    const uint64_t start = drps_clock_ns();
    drps_index_watch_begin(p->r->progress.watch, (enum drps_index_phase)p->phase);
    p->rc = phases[p->phase].run(p->r, &p->err);
    p->r->result->phase_seconds[p->phase] = drps_seconds_since(start);
    drps_index_watch_end(p->r->progress.watch, (enum drps_index_phase)p->phase,
                         p->r->result->phase_seconds[p->phase]);
    return NULL;
}

static int report_start(struct index_run *r, unsigned phase, struct drps_err *err)
{
    r->progress.phase = (enum drps_index_phase)phase;
    return drps_index_report(&r->progress, 0, 0, err);
}

/* Run two phases side by side. If both fail, the first one says how. */
static int run_beside(struct running *first, struct running *second, struct drps_err *err)
{
    pthread_t thread;
    const int alone = pthread_create(&thread, NULL, run_phase, second) != 0;
    (void)run_phase(first); /* leaves its result in there, as does the next one */
    if (alone)
        (void)run_phase(second);
    else
        (void)pthread_join(thread, NULL); /* cannot fail for a thread of ours */
    const struct running *failed = first->rc < 0 ? first : second;
    return failed->rc < 0 ? drps_err_set(err, failed->rc, "%s", failed->err.text) : 0;
}

static int run_phases(struct index_run *r, struct drps_err *err)
{
    int rc = 0;
    for (unsigned i = 0, n; i < DRPS_INDEX_PHASES && rc == 0; i += n) {
        struct running first = {.r = r, .phase = i, .err = DRPS_ERR_INIT};
        struct running second = {.r = r, .phase = i + 1, .err = DRPS_ERR_INIT};
        const int two = phase_applies(r, i) && phase_applies(r, i + 1) && phases[i + 1].beside &&
                        phases[i + 1].beside(r);
        n = two ? 2 : 1;
        if (!phase_applies(r, i)) continue;
        rc = report_start(r, i, err);
        if (rc == 0 && two) rc = report_start(r, i + 1, err);
        if (rc < 0) break;
        if (two) {
            rc = run_beside(&first, &second, err);
        } else {
            (void)run_phase(&first); /* leaves its result in there */
            rc = first.rc < 0 ? drps_err_set(err, first.rc, "%s", first.err.text) : 0;
        }
        if (rc == 0) rc = drps_index_check_interrupt(&r->options, err);
    }
    return rc;
}

static void run_free(struct index_run *r)
{
    for (size_t i = 0; i < r->fields_n; i++)
        free(r->fields[i]);
    free(r->fields);
    drps_read_samples_free(&r->parsed);
    drps_classes_free(r->classes);
    free(r->label_of);
    free(r->class_weights);
    drps_plan_close(r->from);
    drps_plan_close(r->base);
    drps_index_watch_close(r->progress.watch); /* before the folder goes in which it writes */
    drps_stage_abort(&r->stage);
    r->info->classes = NULL;
    for (uint32_t i = 0; r->parts && i < r->parts_n; i++)
        drps_part_free(&r->parts[i]);
    free(r->parts);
    free(r->block_first);
    free(r->range_first);
    free(r->row_homes);
    free(r->scratch);
    free(r->laid);
    free(r->whole);
    free(r->out);
    free(r->train_of);
    free(r->test_of);
    free(r->class_of);
    free(r);
}

/* What the phases report, for the caller and for those who watch. */
static void tell_progress(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    const struct index_run *r = ctx;
    const struct drps_index_options *o = r->asked;
    drps_index_watch_done(r->progress.watch, phase, done, total);
    if (r->options.ranks && phase == DRPS_PHASE_PARSE && done) return; /* told for all ranks */
    if (o->progress) o->progress(o->progress_ctx, phase, done, total);
}

int drps_index_run(const struct drps_io *io, const struct drps_index_options *options,
                   struct drps_index_result *result_out, struct drps_err *err)
{
    uint64_t start = drps_clock_ns();
    const struct drps_io stoppable = {.ops = io->ops, .ctx = io->ctx, .stop = options->interrupt};
    struct index_run *r = calloc(1, sizeof(*r));

    memset(result_out, 0, sizeof(*result_out));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory");
    r->io = &stoppable; /* it outlives all that the phases open */
    r->options = *options;
    r->options.progress = tell_progress;
    r->options.progress_ctx = r;
    r->asked = options;
    r->progress.options = &r->options;
    r->result = result_out;
    r->info = &result_out->info;
    int rc = drps_index_watch_open(options, drps_index_phase_name, &r->progress.watch, err);
    if (rc == 0) rc = begin(r, err);
    if (rc == 0) rc = run_phases(r, err);
    if (rc == 0) rc = publish(r, err);
    if (rc == DRPS_E_INTERRUPTED) { /* whoever noticed it: this is what it means */
        drps_err_clear(err);
        rc = drps_index_check_interrupt(options, err);
    }
    char above[DRPS_ABOVE_MEMORY_BYTES];
    if (rc == -ENOMEM && drps_run_above_memory(&r->options, above, sizeof(above)))
        rc = drps_err_context(err, "%s", above);
    run_free(r);
    result_out->seconds = drps_seconds_since(start);
    return rc;
}
