/* The memory of a prediction, divided among text, the model's blocks and a batch. */
#include "engine/predict/share.h"

#include "base/drps_budget.h"
#include "engine/predict/explain.h"
#include "engine/predict/scorer.h"

enum {
    MIB = 1 << 20,
    ENTRIES_OF_SAMPLE = DRPS_PREDICT_SAMPLE_ENTRIES,
    PROGRAM_BYTES = 16 * MIB,
    BATCH_BYTES = 2 * MIB, /* of rows, at least: */
    ENTRIES_LEAST = 64,    /* but so many */
    ENTRIES_FEW = 4096,    /* and no more, of short ones */
    READER_LEAST = MIB,
    READER_MOST = 32 * MIB,
};

struct sharing {
    const struct drps_predict_options *options;
    const struct drps_modeldir_info *info;
};

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static uint64_t batch_bytes(const struct sharing *p, size_t entries)
{
    const uint64_t more = p->options->explain ? DRPS_EXPLAIN_ENTRY_BYTES + sizeof(uint32_t) : 0;
    return drps_scorer_memory(p->info, entries / ENTRIES_OF_SAMPLE, entries) + entries * more;
}

/* Returns how many entries a batch may have within so many bytes. */
static size_t entries_in(const struct sharing *p, uint64_t bytes, size_t least, size_t most)
{
    while (least < most) {
        const size_t middle = least + (most - least + 1) / 2;
        if (batch_bytes(p, middle) <= bytes)
            least = middle;
        else
            most = middle - 1;
    }
    return least;
}

uint32_t drps_predict_sequence(const struct drps_predict_options *options,
                               const struct drps_modeldir_info *info)
{
    if (!info->sequences.most) return 0;
    if (options->reader.sequence_lines) return DRPS_SEQUENCE_MOST;
    return options->reader.sequence ? options->reader.sequence : info->sequences.most;
}

static size_t entries_least(const struct sharing *p)
{
    /* A batch has a whole sequence at least, whose samples have one entry each. */
    const size_t of_sequence =
        (size_t)drps_predict_sequence(p->options, p->info) * ENTRIES_OF_SAMPLE;
    const size_t least = of_sequence > ENTRIES_LEAST ? of_sequence : ENTRIES_LEAST;
    return entries_in(p, BATCH_BYTES, least, least > ENTRIES_FEW ? least : ENTRIES_FEW);
}

int drps_predict_share_out(const struct drps_predict_options *options, struct drps_modeldir *md,
                           uint64_t limit, struct drps_predict_share *out, struct drps_err *err)
{
    const struct sharing sharing = {options, drps_modeldir_info(md)}, *p = &sharing;
    const uint64_t model_least = drps_modeldir_memory_least(md);
    const uint64_t batch_least = batch_bytes(p, entries_least(p));
    struct drps_budget b;
    drps_budget_init(&b, limit);
    drps_budget_note(&b, "program", PROGRAM_BYTES);
    if (p->options->metrics) drps_budget_note(&b, "metrics", DRPS_METRICS_BYTES);
    if (p->options->calibrate || p->options->curve_bins)
        drps_budget_note(&b, "calibration", DRPS_METRICS_POINTS_BYTES);
    drps_budget_note(&b, "reading the data", 2 * READER_LEAST);
    drps_budget_note(&b, "one batch", batch_least);
    int rc = drps_budget_take(&b, "reading the model", model_least, err);
    if (rc < 0) return rc;
    const uint64_t left = drps_budget_left(&b);
    out->reader_bytes = clamp(READER_LEAST + left / 16, READER_LEAST, READER_MOST);
    out->model_bytes = model_least + left / 16 * 7;
    const uint64_t taken = 2 * (out->reader_bytes - READER_LEAST) +
                           drps_modeldir_memory_used(md, out->model_bytes) - model_least;
    out->entries =
        entries_in(p, batch_least + left - taken, entries_least(p), DRPS_PREDICT_ENTRIES_MOST);
    return 0;
}
