/*
 * The phase that places rows: counts and access patterns of the dictionary give every row its
 * placed id, and names.rec says whose it is. The plan's tables follow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/dictionary/dealt/drps_dict_dealt.h"
#include "index/run/run.h"

static void add_table(struct drps_plan_info *info, const char *name, uint64_t rows)
{
    struct drps_table *t = &info->tables[info->tables_n++];
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    t->first = info->rows;
    t->rows = rows;
    info->rows += rows;
}

static int relabel(struct index_run *r, struct drps_err *err)
{
    struct read_samples *p = &r->parsed;
    const size_t before = p->replayed > 0; /* a generation whose ids are placed */
    int rc = 0;
    for (size_t g = 0; rc == 0 && g < drps_dict_generations(p->dict); g++) {
        uint32_t base = drps_dict_base(p->dict, g);
        uint32_t *map = drps_array_new(drps_dict_base(p->dict, g + 1) - base, sizeof(*map));
        rc = map ? drps_dict_map(p->dict, g, map, err)
                 : drps_err_set(err, -ENOMEM, "no memory for placing");
        if (rc == 0) rc = drps_spool_relabel(p->train, before + g, base, map, err);
        if (rc == 0) rc = drps_spool_relabel(p->test, before + g, base, map, err);
        free(map);
    }
    return rc;
}

const uint32_t *drps_run_map(const struct index_run *r)
{
    return r->drawn || r->moved || r->parsed.replayed ? NULL : drps_dict_placed(r->parsed.dict);
}

int drps_phase_place(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct drps_algorithm *a = r->options.algorithm;
    uint64_t rows[DRPS_ALGORITHM_TABLES];

    if (r->layers.n && !r->base)
        add_table(info, DRPS_PLAN_NET, drps_layers_rows(&r->layers, info->dim));
    else if (!r->options.no_bias && !r->base)
        add_table(info, DRPS_PLAN_BIAS, 1);
    const uint64_t first = r->base ? r->base->info.rows : info->rows;
    int rc = r->options.ranks
                 ? drps_dict_place_dealt(r->parsed.dict, r->options.ranks, r->batch_dir,
                                         (uint32_t)first, rows, NULL, err)
                 : drps_dict_place(r->parsed.dict, r->batch_dir, (uint32_t)first, rows, err);
    if (rc < 0) return rc;
    for (size_t t = 0; t < DRPS_ALGORITHM_TABLES && a->tables[t] && !r->base; t++)
        add_table(info, a->tables[t], rows[t]);
    if (r->base) drps_run_extend_tables(r, rows[0] + rows[1]);
    if (!info->rows)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "no training sample has a feature, and there is no intercept");
    const int relabels = !drps_dict_placed(r->parsed.dict) || r->parsed.replayed;
    return relabels ? relabel(r, err) : 0;
}
