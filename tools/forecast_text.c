/* Texts of the forecast. Plans call the stores of blocks "pib", which drps-train's --store does not
 * know: here they are "blocks". */
#include "tools/drps_forecast_text.h"

#include <inttypes.h>
#include <string.h>

#include "tools/drps_json_text.h"

const char *forecast_store(const json_t *j)
{
    const char *store = json_string_value(json_object_get(j, "store"));
    if (!store) return "-";
    return strcmp(store, "pib") == 0 ? "blocks" : store;
}

static void print_one(FILE *out, const json_t *f)
{
    const json_t *seconds = json_object_get(f, "seconds"); /* absent: no speeds were measured */
    fprintf(out, "  %-9s %10s", forecast_store(f), size_of(f, "memory_bytes"));
    if (!json_is_true(json_object_get(f, "feasible"))) {
        fprintf(out, "   one batch does not fit\n");
        return;
    }
    fprintf(out, " %11s %11s %11s", size_of(f, "read_bytes"), size_of(f, "written_bytes"),
            count_of(f, "ios"));
    if (seconds)
        fprintf(out, " %12s %9s %9s", number_of(seconds, "compute", "%.2f"),
                number_of(seconds, "disk", "%.2f"), number_of(seconds, "epoch", "%.2f"));
    fprintf(out, "\n");
}

int forecast_has_time(const json_t *list)
{
    size_t i;
    json_t *f;
    json_array_foreach(list, i, f) if (json_object_get(f, "seconds")) return 1;
    return 0;
}

void forecast_print(FILE *out, const json_t *list)
{
    size_t i;
    json_t *f;
    const char *ended = ""; /* the store whose lines have ended: less memory does not fit either */
    double sampled = 1;
    if (!json_array_size(list)) return; /* made with --no-forecast */
    const int timed = forecast_has_time(list);
    fprintf(out,
            "\nforecast: what an epoch would move between memory and disk, by store and memory for "
            "rows\n  %-9s %10s %11s %11s %11s",
            "store", "memory", "read", "written", "I/Os");
    if (timed) fprintf(out, " %12s %9s %9s", "arithmetic s", "disk s", "epoch s");
    fprintf(out, "\n");
    json_array_foreach(list, i, f)
    {
        const json_t *share = json_object_get(f, "sampled"); /* absent in older plans: all */
        if (share && json_number_value(share) < sampled) sampled = json_number_value(share);
        if (strcmp(forecast_store(f), ended) == 0) continue;
        print_one(out, f);
        if (!json_is_true(json_object_get(f, "feasible"))) ended = forecast_store(f);
    }
    fprintf(out, "  (blocks: --store file, rocksdb or leveldb");
    if (sampled < 1)
        fprintf(out, "; counted on %.3g %% of the blocks, and scaled up", 100 * sampled);
    fprintf(out, ")\n");
    if (timed)
        fprintf(out,
                "  (seconds: by the speeds measured on the machine that made the plan, with one "
                "thread; the disk works beside arithmetic)\n");
}

/* The forecast is of rows that go to disk and come back once. Those of runs that are merged go
 * twice.
 */
const char *forecast_reason(uint64_t merged_bytes, uint64_t forecast_bytes, uint64_t bytes,
                            char out[FORECAST_REASON])
{
    out[0] = '\0';
    if (bytes <= forecast_bytes + forecast_bytes / 10) return out;
    if (merged_bytes)
        (void)snprintf(
            out, FORECAST_REASON,
            ": rows on disk are merged, which moves them twice; more memory avoids that");
    return out;
}
