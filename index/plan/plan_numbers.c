/* What follows from the numbers of a plan, once they were checked. */
#include <string.h>

#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_plan.h"

double drps_plan_weight_of(const struct drps_plan_info *info, uint64_t samples)
{
    const double sum = info->weights.sum;
    if (!(info->weights.most > 0)) return (double)samples;
    return samples == info->samples ? sum : sum / (double)info->samples * (double)samples;
}

int drps_plan_layers(const struct drps_plan_info *info, struct drps_layers *out,
                     struct drps_err *err)
{
    const int classes = drps_plan_label_classes(info);
    int rc = drps_layers_parse(out, info->net, err);
    if (rc < 0) return rc;
    return drps_layers_shape(out, info->field_count, classes > 1 ? (uint32_t)classes : 1, err);
}

int drps_plan_label_classes(const struct drps_plan_info *info)
{
    if (!info->classes) return info->classification != 0;
    return (int)drps_classes_count(info->classes);
}

int drps_plan_is_matrix(const struct drps_plan_info *info)
{
    return (info->classes || info->outputs) && !info->net[0];
}

const struct drps_algorithm *drps_plan_algorithm(const struct drps_plan_info *info)
{
    const struct drps_algorithm *a = drps_algorithm_find(info->algo);
    struct drps_expr e;
    if (a && drps_algorithm_is_net(a))
        return drps_algorithm_of_net(info->classes != NULL, info->sequences.most != 0);
    if (!a || !drps_algorithm_has_text(a)) return a;
    return drps_expr_parse(&e, info->expression, info->outputs > 0, NULL) < 0
               ? a
               : drps_algorithm_of(a, &e);
}

int drps_plan_reads_names(const struct drps_plan_info *info)
{
    return info->hashing.bits || info->numbers ? info->fields_n > 0 : info->string_names;
}

uint32_t drps_plan_entry_fields(const struct drps_plan_info *info)
{
    return info->numbers ? 0 : info->field_count;
}

uint32_t drps_plan_numbers_each(const struct drps_plan_info *info)
{
    return info->numbers ? info->field_count : 0;
}

uint32_t drps_plan_row_fields(const struct drps_plan_info *info)
{
    return info->negatives.each ? 0 : info->field_count;
}

uint32_t drps_tables_common_rows(const struct drps_table *tables, size_t n)
{
    const int there = n && (strcmp(tables[0].name, DRPS_PLAN_BIAS) == 0 ||
                            strcmp(tables[0].name, DRPS_PLAN_NET) == 0);
    return there ? (uint32_t)tables[0].rows : 0;
}

uint32_t drps_plan_common_rows(const struct drps_plan_info *info)
{
    return drps_tables_common_rows(info->tables, info->tables_n);
}

uint32_t drps_plan_own_common_rows(const struct drps_plan_info *part, uint32_t common)
{
    const uint64_t first = part->ranks.first_row;
    const uint64_t left = first < common ? common - first : 0;
    return (uint32_t)(left < part->rows ? left : part->rows);
}

void drps_plan_mix_tables(struct drps_plan_info *info)
{
    const size_t t = drps_plan_common_rows(info) ? 1 : 0;
    if (info->tables_n <= t + 1) return;
    memcpy(info->tables[t].name, "rows", sizeof("rows"));
    info->tables[t].rows = info->rows - info->tables[t].first;
    info->tables_n = t + 1;
}

enum drps_plan_shape drps_plan_shape(const struct drps_plan_info *info)
{
    if (info->ranks.count <= 1) return DRPS_PLAN_ONE;
    if (info->ranks.rank == DRPS_PLAN_WHOLE) return DRPS_PLAN_ALL;
    return drps_plan_circulates(info) ? DRPS_PLAN_CIRCULATING : DRPS_PLAN_PART;
}

int drps_plan_circulates(const struct drps_plan_info *info)
{
    return info->ranks.count > 1 && info->lanes > 1;
}

struct drps_row_range drps_plan_own_rows(const struct drps_plan_info *info)
{
    const struct drps_plan_ranks *r = &info->ranks;
    uint64_t at = 0;
    for (size_t i = 0; i < r->held_n; at += r->held[i++].rows)
        if (r->held[i].first == r->first_row)
            return (struct drps_row_range){.first = at, .rows = r->held[i].rows};
    return (struct drps_row_range){.first = 0, .rows = info->rows};
}

uint64_t drps_plan_placed_id(const struct drps_plan_ranks *ranks, uint64_t row)
{
    size_t k = 0;
    for (; k + 1 < ranks->held_n && row >= ranks->held[k].rows; k++)
        row -= ranks->held[k].rows;
    return ranks->held[k].first + row;
}
