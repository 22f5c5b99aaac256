/* Makes a plan that goes on from an earlier one, its base. The base settles many options; others
 * cannot go with it; labels and rows of the new data must fit. Rows keep their numbers, so that
 * training can go on from what was learned of them. New rows come behind them. */
#include <string.h>

#include "index/ranks/drps_placement.h"
#include "index/run/run.h"

/* ---- Options ---- */

static int no_base(const struct drps_plan *base, const char *why, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG, "a plan cannot go on from %s: %s", base->dir, why);
}

/* Refuses options with which rows would get other numbers. */
static int check_numbers(const struct drps_plan *base, const struct drps_index_options *o,
                         struct drps_err *err)
{
    const struct block_builder *builder =
        o->blocks.by ? drps_block_builder_find(o->blocks.by) : NULL;
    if (drps_run_is_grid(o))
        return no_base(base,
                       "its users and items have numbers already, and the order grid gives them "
                       "numbers by group; use the order shuffled or given",
                       err);
    if (o->lanes > 1)
        return no_base(base,
                       "its users and items share one table, and lanes cut them apart; leave the "
                       "lanes out",
                       err);
    if (builder && builder->orders)
        return no_base(base,
                       "its rows have numbers already, and this block builder gives them others; "
                       "use pattern or none",
                       err);
    if (!drps_placement_renumbers(o->partition)) return 0;
    return no_base(base,
                   "its rows have numbers already, and this partition gives them others; use the "
                   "partition range",
                   err);
}

static int check_base(const struct drps_plan *base, const struct drps_index_options *o,
                      struct drps_err *err)
{
    const struct drps_algorithm *a = drps_plan_algorithm(&base->info);
    if (o->from_plan) return no_base(base, "a plan made from a plan has no new data", err);
    if (!a) return no_base(base, "its algorithm is not known", err);
    if (drps_algorithm_has_sample_rows(a))
        return no_base(base,
                       "each of its samples has a row of its own, which is known by the sample's "
                       "number in the data alone; make a plan of the new data, and begin training "
                       "with the rows of the earlier model, which are found by name",
                       err);
    if (drps_algorithm_draws(a))
        return no_base(base,
                       "negatives are drawn from all items, whose rows lie together, and new items "
                       "would lie behind users; make a plan of all data where the earlier items "
                       "are to stay, else of the new data, and begin training with the rows of the "
                       "earlier model, which are found by name",
                       err);
    if (o->replay > 0 && o->class_weights)
        return no_base(base,
                       "samples that are replayed have the weights that they had there, and class "
                       "weights would count twice; leave out one of the two",
                       err);
    return check_numbers(base, o, err);
}

/* Takes over the label's column and the separator of the base. */
static void take_columns(const struct drps_plan_info *info, struct drps_reader_options *r)
{
    if (!r->csv_label && !r->clicks && info->label_column[0]) r->csv_label = info->label_column;
    if (!r->csv_separator) r->csv_separator = info->separator;
}

int drps_run_take_base(const struct drps_plan *base, struct drps_index_options *o,
                       struct drps_err *err)
{
    const struct drps_plan_info *info = &base->info;
    int rc = check_base(base, o, err);
    if (rc < 0) return rc;
    drps_run_take_model(info, o);
    take_columns(info, &o->reader);
    if (!o->batch_size && !(o->batch_percent > 0)) o->batch_size = info->batch_size;
    o->base_plan = base;
    return drps_plan_read_file(base, DRPS_FILE_NAMES, NULL, NULL, err);
}

/* ---- Labels ---- */

int drps_run_check_classes(const struct index_run *r, struct drps_err *err)
{
    const struct drps_classes *now = r->classes;
    if (!r->base) return 0;
    const size_t n = drps_classes_count(r->base->info.classes);
    if (drps_classes_count(now) == n) return 0;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "the label %s is none of the %zu classes of %s, and each row has a number "
                        "for each class: make a plan of all data together, without a base",
                        drps_classes_name(now, n), n, r->base->dir);
}

static int check_labels(const struct drps_plan *base, const struct label_set *set,
                        struct drps_err *err)
{
    const float low = base->info.label_negative, high = base->info.label_positive;
    for (size_t i = 0; i < set->n; i++)
        if (set->values[i] != low && set->values[i] != high)
            return drps_err_set(err, DRPS_E_FORMAT, "a sample has the label %g; %s has %g and %g",
                                (double)set->values[i], base->dir, (double)low, (double)high);
    return 0;
}

int drps_run_take_labels(struct index_run *r, struct drps_err *err)
{
    const struct drps_plan_info *base = &r->base->info;
    r->info->classification = base->classification;
    r->info->label_negative = base->label_negative;
    r->info->label_positive = base->label_positive;
    if (!base->classification) return 0;
    int rc = check_labels(r->base, &r->parsed.labels, err);
    return rc == 0 ? check_labels(r->base, &r->parsed.test_labels, err) : rc;
}

int drps_run_take_fields(struct index_run *r, struct drps_err *err)
{
    const uint32_t n = r->base->info.field_count;
    const uint32_t read = r->info->field_count;
    r->info->field_count = n;
    if (read <= n) return 0;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "a sample has the field %u, and %s has the fields 0 to %u, as many as the "
                        "model is made for: make a plan of all data together, without a base",
                        read - 1, r->base->dir, n - 1);
}

/* ---- Rows ---- */

int drps_run_check_dim(const struct index_run *r, struct drps_err *err)
{
    const uint32_t base = r->base->info.dim, now = r->info->dim;
    if (base == now) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts itself: rows of %u floats, not %u",
                        r->base->dir, base, now);
}

void drps_run_extend_tables(struct index_run *r, uint64_t new_rows)
{
    const struct drps_plan_info *base = &r->base->info;
    struct drps_plan_info *info = r->info;
    info->tables_n = base->tables_n;
    memcpy(info->tables, base->tables, sizeof(info->tables));
    info->rows = r->base->info.rows + new_rows;
    struct drps_table *last = &info->tables[info->tables_n - 1];
    last->rows = info->rows - last->first;
    drps_plan_mix_tables(info);
}
