/* The numbers of a batch, and of a list of rows, against those of its plan. */
#include "index/plan/drps_batch.h"
#include "index/plan/manifest/check.h"

/* Refuses a sample with too many entries. */
static int check_entries(const struct drps_plan_info *info, const struct drps_batch *b,
                         struct drps_err *err)
{
    size_t most = b->samples ? b->per_sample : 0;
    if (b->starts)
        for (size_t s = most = 0; s < b->samples; s++)
            if (b->starts[s + 1] - b->starts[s] > most) most = b->starts[s + 1] - b->starts[s];
    if (most <= drps_plan_entries_most(info, b->rows)) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "a sample of %zu entries among %zu rows", most,
                        b->rows);
}

int drps_plan_check_batch(const struct drps_plan_info *info, const struct drps_batch *b,
                          struct drps_err *err)
{
    if (b->samples > info->max_batch_samples)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%zu samples, " DRPS_FILE_MANIFEST " says at most %llu", b->samples,
                            (unsigned long long)info->max_batch_samples);
    if (b->rows > info->max_batch_rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%zu rows, " DRPS_FILE_MANIFEST " says at most %llu", b->rows,
                            (unsigned long long)info->max_batch_rows);
    if (b->stratum && (info->lanes < 2 || b->lane >= info->lanes))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "lane %u of a stratum, " DRPS_FILE_MANIFEST " says %llu lanes", b->lane,
                            (unsigned long long)info->lanes);
    if (b->nnz && b->field_count != drps_plan_entry_fields(info))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "entries of %u fields, " DRPS_FILE_MANIFEST " says %u", b->field_count,
                            drps_plan_entry_fields(info));
    if (b->samples && b->numbers.each != drps_plan_numbers_each(info))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "samples of %u numbers, " DRPS_FILE_MANIFEST " says %u",
                            b->numbers.each, drps_plan_numbers_each(info));
    if (b->hand_over && !drps_plan_circulates(info))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "it hands rows over in a plan where none circulate");
    return check_entries(info, b, err);
}

int drps_plan_check_list(const struct drps_plan_info *info, const uint32_t *ids, size_t n,
                         uint32_t common, struct drps_err *err)
{
    if (n && ids[n - 1] >= info->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %u of %llu", ids[n - 1],
                            (unsigned long long)info->rows);
    if (common && (n < common || ids[common - 1] != common - 1)) /* rows increase */
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "its row list does not begin with the %u row%s that every batch has",
                            common, common > 1 ? "s" : "");
    return 0;
}
