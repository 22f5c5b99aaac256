/* The phases of drps-index in order; see drps_index.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/blocks/remote/drps_remote.h"
#include "index/drps_index.h"
#include "index/plan/drps_names.h"
#include "index/ranks/drps_placement.h"
#include "index/run/run.h"
#include "storage/io/drps_probe.h"
#include "storage/relay/drps_relay.h"

/* Whole sectors of 512 bytes. Of 512 bytes to 8 KiB, 2 cost a solid-state disk least or little more
 * than least, for rows of one float to factors of rank 16 (bench/RESULTS.md). */
enum { BLOCK_BYTES = 2048 };

static const char *const phase_names[] = {"parse", "place", "batch", "block", "window", "forecast"};

const char *drps_index_phase_name(enum drps_index_phase phase)
{
    return phase_names[phase];
}

/* ---- Labels ---- */

/* Classification wants exactly two labels; the smaller one becomes -1, the larger +1. */
static int settle_labels(struct run *r, struct drps_err *err)
{
    const struct label_set *set = &r->parsed.labels;
    const struct drps_algorithm *a = drps_algorithm_find(r->options.algo);
    const char *task = r->options.task ? r->options.task : "auto";
    const int either = a->labels == DRPS_LABELS_EITHER;
    const int wanted =
        a->labels == DRPS_LABELS_CLASSES || (either && strcmp(task, "classification") == 0);

    r->info->classification = wanted || (either && strcmp(task, "auto") == 0 && set->n == 2);
    if (!r->info->classification) return 0;
    if (set->n == 1)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "every training label is %g: classification needs two classes (check "
                            "the label column, or "
                            "use the algorithm lir)",
                            (double)set->values[0]);
    if (set->n != 2)
        return drps_err_set(
            err, DRPS_E_FORMAT,
            "more than two distinct labels (%g, %g, %g, ...): the algorithm %s needs "
            "exactly two; for numbers "
            "use the algorithm lir%s",
            (double)set->values[0], (double)set->values[1], (double)set->values[2], a->name,
            either ? " or the task regression" : "");
    r->info->label_negative = fminf(set->values[0], set->values[1]);
    r->info->label_positive = fmaxf(set->values[0], set->values[1]);
    const struct label_set *test = &r->parsed.test_labels;
    for (size_t i = 0; i < test->n; i++)
        if (test->values[i] != r->info->label_negative &&
            test->values[i] != r->info->label_positive)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "a test sample has the label %g; training has only %g and %g",
                                (double)test->values[i], (double)r->info->label_negative,
                                (double)r->info->label_positive);
    return 0;
}

static int settle_loss(struct run *r, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(r->options.algo);
    enum drps_loss loss = drps_algorithm_loss(a, r->info->classification);
    const char *name = r->options.loss ? r->options.loss : drps_loss_name(loss);
    const int fits = drps_loss_find(name, &loss) && drps_algorithm_has_loss(a, loss) &&
                     drps_loss_is_classification(loss) == r->info->classification;
    if (!fits)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the loss %s does not fit the algorithm %s with these labels", name,
                            a->name);
    (void)snprintf(r->info->loss, sizeof(r->info->loss), "%s", name);
    return 0;
}

/* ---- Parse ---- */

static int parse(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct parsed *p = &r->parsed;

    int rc = parse_inputs(r->io, &r->options, r->scratch, p, err);
    if (rc < 0) return rc;
    if (!p->samples)
        return drps_err_set(err, DRPS_E_FORMAT, "the input holds no %ssample: nothing to train on",
                            p->test_samples ? "training " : "");
    if (r->options.tests_n && !p->test_samples)
        return drps_err_set(err, DRPS_E_FORMAT, "the test input holds no sample");
    rc = settle_labels(r, err);
    if (rc == 0) rc = settle_loss(r, err);
    if (rc < 0) return rc;
    info->samples = p->samples;
    info->test_samples = p->test_samples;
    info->nnz = p->nnz;
    info->string_names = p->string_names;
    info->fields_n = p->fields_n;
    (void)snprintf(info->format, sizeof(info->format), "%s", p->format);
    r->result->input_bytes = p->bytes;
    r->result->input_lines = p->lines;
    r->result->skipped_lines = p->skipped;
    return 0;
}

/* ---- Place ---- */

static void add_table(struct drps_plan_info *info, const char *name, uint64_t rows)
{
    struct drps_table *t = &info->tables[info->tables_n++];
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    t->first = info->rows;
    t->rows = rows;
    info->rows += rows;
}

static int relabel(struct run *r, struct drps_err *err)
{
    struct parsed *p = &r->parsed;
    int rc = 0;
    for (size_t g = 0; rc == 0 && g < dict_generations(p->dict); g++) {
        uint32_t base = dict_base(p->dict, g);
        uint32_t *map = drps_array_new(dict_base(p->dict, g + 1) - base, sizeof(*map));
        rc = map ? dict_map(p->dict, g, map, err)
                 : drps_err_set(err, -ENOMEM, "no memory for placing");
        if (rc == 0) rc = spool_relabel(p->train, g, base, map, err);
        if (rc == 0) rc = spool_relabel(p->test, g, base, map, err);
        free(map);
    }
    return rc;
}

static int place(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct drps_algorithm *a = drps_algorithm_find(r->options.algo);
    uint64_t rows[DRPS_ALGORITHM_TABLES];

    if (!r->options.no_bias) add_table(info, DRPS_PLAN_BIAS, 1);
    int rc = dict_place(r->parsed.dict, r->batch_dir, (uint32_t)info->rows, rows, err);
    if (rc < 0) return rc;
    for (size_t t = 0; t < DRPS_ALGORITHM_TABLES && a->tables[t]; t++)
        add_table(info, a->tables[t], rows[t]);
    if (!info->rows)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "no training sample has a feature, and there is no intercept");
    return dict_generations(r->parsed.dict) > 1 ? relabel(r, err) : 0;
}

/* ---- The run ---- */

/*
 * What the disk says. A block that is used is read and written again: two requests and its bytes
 * twice. Costs count one way, so both are means of reading and writing; what is compared stays the
 * same. Source: DRPS, section 4, Eq. 1.
 */
static int calibrate(struct run *r, struct drps_err *err)
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
    drps_log(r->options.log, DRPS_LOG_INFO,
             "%s: random requests of %s take %.1f us to read, %.1f us to write; long ones of %s "
             "%.1f and %.1f us (%.0f and %.0f MB/s); in the mean a request costs %.1f us, "
             "and its bytes go at %.0f MB/s",
             o->calibrate, drps_size_format(t.random_bytes, block, sizeof(block)),
             t.random_read_ns / 1e3, t.random_write_ns / 1e3,
             drps_size_format(t.long_bytes, chunk, sizeof(chunk)), t.long_read_ns / 1e3,
             t.long_write_ns / 1e3, cost.read_bps / 1e6, cost.write_bps / 1e6,
             (double)o->seek_ns / 1e3, (double)o->transfer_bps / 1e6);
    return 0;
}

static int make_folder(struct run *r, const char *path, struct drps_err *err)
{
    int rc = r->io->ops->mkdir(r->io->ctx, path, 0777);
    return rc < 0 ? drps_err_set(err, rc, "cannot create %s: %s", path, drps_err_name(rc)) : 0;
}

/* And parts to fill in. */
static int make_folders(struct run *r, struct drps_err *err)
{
    const int placed = placement_renumbers(r->options.partition);
    r->parts_n = r->options.workers;
    r->parts = calloc(r->parts_n, sizeof(*r->parts));
    r->scratch = drps_path_join(r->stage.dir, DRPS_FILE_SCRATCH);
    if (r->scratch)
        r->laid = placed ? drps_path_join(r->scratch, DRPS_FILE_LAID) : strdup(r->stage.dir);
    if (!r->parts || !r->laid) return drps_err_set(err, -ENOMEM, "no memory for a plan's parts");
    r->batch_dir = block_builder_find(r->options.blocks.by)->orders ? r->scratch : r->laid;
    int rc = make_folder(r, r->scratch, err);
    return rc == 0 && placed ? make_folder(r, r->laid, err) : rc;
}

static int begin(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    int rc = run_check_options(&r->options, err);
    info->block_bytes = r->options.blocks.bytes ? r->options.blocks.bytes : BLOCK_BYTES;
    if (rc == 0 && r->options.blocks.calibrate) rc = calibrate(r, err);
    if (rc == 0)
        rc = drps_stage_begin(&r->stage, r->io, r->options.out, &drps_plan_kind, r->options.force,
                              err);
    if (rc < 0) return rc;
    (void)snprintf(info->algo, sizeof(info->algo), "%s", r->options.algo);
    (void)snprintf(info->order, sizeof(info->order), "%s",
                   r->options.order ? r->options.order : "shuffled");
    info->rank = r->options.rank;
    info->dim = drps_algorithm_dim(drps_algorithm_find(info->algo), info->rank);
    info->row_bytes = info->dim * sizeof(float) * 2;
    info->seed = r->options.seed;
    info->hash_seed = r->options.reader.hash_seed;
    info->memory_bytes = r->options.memory_bytes;
    return make_folders(r, err);
}

/* Sums up the files of a plan that are there. */
static uint64_t folder_bytes(const char *dir)
{
    uint64_t sum = 0;
    for (const struct drps_owned *file = drps_plan_kind.owned; file->name; file++) {
        struct stat st;
        char *path = file->inside ? NULL : drps_path_join(dir, file->name);
        if (path && stat(path, &st) == 0) sum += (uint64_t)st.st_size;
        free(path);
    }
    return sum;
}

static void measure_plan(struct run *r)
{
    r->result->plan_bytes = 0;
    for (uint32_t i = 0; i < r->parts_n; i++) {
        const uint64_t bytes = folder_bytes(r->parts[i].dir);
        if (r->parts_n > 1) r->result->ranks[i].plan_bytes = bytes;
        r->result->plan_bytes += bytes;
    }
    if (r->parts_n > 1) r->result->plan_bytes += folder_bytes(r->stage.dir);
}

static int publish(struct run *r, char *const *fields, struct drps_err *err)
{
    int rc = drps_io_remove_tree(r->io, r->scratch, err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++)
        rc = part_save(&r->parts[i], r->io, fields, err);
    if (rc == 0 && r->parts_n > 1)
        rc = drps_plan_save(r->io, r->stage.dir, r->info, fields, NULL, err);
    if (rc == 0) measure_plan(r);
    if (rc == 0) rc = drps_stage_commit(&r->stage, err);
    if (r->stage.left.code) drps_log(r->options.log, DRPS_LOG_WARN, "%s", r->stage.left.text);
    return rc;
}

static int (*const phases[DRPS_INDEX_PHASES])(struct run *, struct drps_err *) = {
    parse, place, run_make_batches, run_make_blocks, run_make_windows, run_forecast};

int drps_index_run(const struct drps_io *io, const struct drps_index_options *options,
                   struct drps_index_result *result_out, struct drps_err *err)
{
    uint64_t start = drps_clock_ns();
    const struct drps_io stoppable = {.ops = io->ops, .ctx = io->ctx, .stop = options->interrupt};
    struct run *r = calloc(1, sizeof(*r));
    char **fields = NULL;
    size_t fields_n = 0;

    memset(result_out, 0, sizeof(*result_out));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory");
    r->io = &stoppable; /* it outlives all that the phases open */
    r->options = *options;
    r->result = result_out;
    r->info = &result_out->info;
    int rc = begin(r, err);
    for (unsigned i = 0; rc == 0 && i < DRPS_INDEX_PHASES; i++) {
        uint64_t phase_start = drps_clock_ns();
        if (options->progress)
            options->progress(options->progress_ctx, (enum drps_index_phase)i, 0, 0);
        if (i == DRPS_PHASE_BATCH) { /* the rest of what was parsed goes with this phase */
            fields = r->parsed.fields;
            fields_n = r->parsed.fields_n;
            r->parsed.fields = NULL;
        }
        rc = phases[i](r, err);
        if (rc == 0) rc = check_interrupt(&r->options, err);
        result_out->phase_seconds[i] = drps_seconds_since(phase_start);
    }
    if (rc == 0) rc = publish(r, fields, err);
    if (rc == DRPS_E_INTERRUPTED) { /* whoever noticed it: this is what it means */
        drps_err_clear(err);
        rc = check_interrupt(options, err);
    }
    for (size_t i = 0; i < fields_n; i++)
        free(fields[i]);
    free(fields);
    parsed_free(&r->parsed);
    drps_stage_abort(&r->stage);
    for (uint32_t i = 0; i < r->parts_n; i++)
        part_free(&r->parts[i]);
    free(r->parts);
    free(r->scratch);
    free(r->laid);
    free(r);
    result_out->seconds = drps_seconds_since(start);
    return rc;
}
