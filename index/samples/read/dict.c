/* The dictionary of the features that the input has, where the algorithm can use these. */
#include <string.h>

#include "index/plan/drps_algorithm.h"
#include "index/reader/input/drps_input.h"
#include "index/samples/read/read.h"

/* The bytes of all training files; 0: not known. */
static uint64_t input_bytes(const struct drps_index_options *o)
{
    uint64_t bytes;
    return drps_input_sizes(o->inputs, o->inputs_n, &bytes) ? bytes : 0;
}

int drps_read_in_grid(const struct drps_index_options *o)
{
    return o->order && strcmp(o->order, "grid") == 0;
}

int drps_read_open_dict(const struct drps_io *io, const struct drps_index_options *o,
                        const char *dir, struct read_samples *p, struct drps_err *err)
{
    const struct drps_algorithm *a = o->algorithm;
    const int rates = drps_algorithm_rates(a);
    struct dict_options d = {.memory_bytes = o->memory_bytes / 2,
                             .input_bytes = input_bytes(o),
                             .strings = p->string_names && !o->hashing.bits && !p->numbers,
                             .table_by_field = rates,
                             .table_by_key = drps_algorithm_has_sample_rows(a),
                             .by_hash = drps_read_in_grid(o),
                             .order_seed = o->seed,
                             .hash_seed = o->reader.hash_seed};
    if (o->base_plan) {
        d.base_dir = o->base_plan->dir;
        d.base_rows = o->base_plan->info.rows;
    }
    if (rates && strcmp(p->format, "ratings") != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the algorithm %s needs ratings (user, item, rating); the input is in "
                            "format %s: use the algorithm fm, or name the format ratings if the "
                            "input was taken for something else",
                            a->name, p->format);
    if (strcmp(p->format, "docword") == 0 && !drps_algorithm_is_topic(a) && !d.table_by_key)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "docword has no labels: only topic models read it, and the algorithm "
                            "%s needs labels",
                            a->name);
    if (d.table_by_key && d.strings)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the algorithm %s needs %s by number, in format docword, libsvm or idx; the "
            "input is in format %s",
            drps_algorithm_is_topic(a) ? a->name : "expr with own",
            drps_algorithm_is_topic(a) ? "words" : "features", p->format);
    return drps_dict_open(io, dir, &d, &p->dict, err);
}
