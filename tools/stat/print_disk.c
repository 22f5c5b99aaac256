/* What went between memory and disk in training, or between memory and a device, and what the
 * windows of store relay did. */
#include <stdio.h>

#include "tools/drps_forecast_text.h"
#include "tools/stat/print.h"
#include "tools/drps_json_text.h"

static void print_io(const json_t *training)
{
    const json_t *io = json_object_get(training, "io");
    printf("  %-8s %12s %12s %10s %12s %10s %10s\n", "", "operations", "bytes", "MB/s", "calls",
           "50 %, us", "99 %, us");
    printf("  %-8s %12s %12s %10s %12s %10s %10s\n", "reads", count_of(io, "reads"),
           size_of(io, "read_bytes"), rate_of(io, "read_bytes_per_s"), count_of(io, "read_calls"),
           micros_of(io, "read_p50_seconds", "read_p50_us"),
           micros_of(io, "read_p99_seconds", "read_p99_us"));
    printf("  %-8s %12s %12s %10s %12s %10s %10s\n", "writes", count_of(io, "writes"),
           size_of(io, "written_bytes"), rate_of(io, "written_bytes_per_s"),
           count_of(io, "write_calls"), micros_of(io, "write_p50_seconds", "write_p50_us"),
           micros_of(io, "write_p99_seconds", "write_p99_us"));
    printf("  seeks %s, %s reads at a time; the process moved %s from disk and %s to it\n",
           count_of(io, "seeks"), number_of(io, "queue_depth", "%.1f"),
           size_of(training, "process_read_bytes"), size_of(training, "process_written_bytes"));
    printf("  plan files: %s read, waited %s s\n", size_of(training, "plan_read_bytes"),
           number_of(training, "plan_wait_seconds", "%.2f"));
}

static void print_device(const json_t *d)
{
    if (!json_is_object(d)) return; /* a store that does not say */
    const char *remark = text_of(d, "remark");
    printf("  device: %s requests to read (%s, p50 %s us), %s to write (%s, p50 %s us), depth %s\n",
           count_of(d, "reads"), size_of(d, "read_bytes"),
           micros_of(d, "read_p50_seconds", "read_p50_us"), count_of(d, "writes"),
           size_of(d, "written_bytes"), micros_of(d, "write_p50_seconds", "write_p50_us"),
           number_of(d, "queue_depth", "%.1f"));
    printf("  through gaps of %s, in sectors of %s, by %s%s%s%s\n", size_of(d, "gap_bytes"),
           size_of(d, json_object_get(d, "sector_bytes") ? "sector_bytes" : "sector"),
           text_of(d, "io_engine"),
           json_is_true(json_object_get(d, "direct")) ? ", direct" : ", through the page cache",
           *remark ? "; " : "", remark);
}

static void print_blocks(const json_t *blocks)
{
    if (!json_is_object(blocks)) return; /* a store without a pool */
    printf("  blocks: %s needed, %s in memory, %s created, %s evicted (%s); pool of %s rows, %s\n",
           count_of(blocks, "needed"), share_of(blocks, "hit", "needed"),
           count_of(blocks, "created"), count_of(blocks, "evicted"), text_of(blocks, "evict"),
           count_of(blocks, "pool_rows"), size_of(blocks, "pool_bytes"));
}

static void print_windows(const json_t *windows)
{
    if (!json_is_object(windows)) return; /* a store without windows */
    const char *remark = text_of(windows, "remark");
    printf("  windows: %s an epoch (batches whose rows are in memory together); "
           "%s rows (%s) in memory\n",
           count_of(windows, "windows"), count_of(windows, "pool_rows"),
           size_of(windows, "pool_bytes"));
    printf("  rows of windows: %s kept (%s), %s arrived (%s), %s created (%s)\n",
           count_of(windows, "rows_kept"), percent_of(windows, "kept_share"),
           count_of(windows, "rows_arrived"), percent_of(windows, "arrived_share"),
           count_of(windows, "rows_created"), percent_of(windows, "created_share"));
    printf("  chunks of %s, moved by %s%s%s%s\n", size_of(windows, "chunk_bytes"),
           text_of(windows, "io_engine"),
           json_is_true(json_object_get(windows, "direct")) ? ", direct"
                                                            : ", through the page cache",
           *remark ? "; " : "", remark);
}

static void print_window(size_t number, const json_t *w, double epochs)
{
    static const char *const counts[] = {"rows", "rows_kept", "rows_arrived", "rows_created"};
    static const char *const older[] = {"rows", "kept", "arrived", "created"};
    static const char *const sizes[] = {"read_bytes", "written_bytes"};
    static const char *const times[] = {"open_seconds", "close_seconds", "stall_seconds"};
    printf("  %6zu", number);
    for (size_t i = 0; i < 4; i++) {
        const json_t *v = json_object_get(w, counts[i]);
        if (!v) v = json_object_get(w, older[i]);
        printf(" %10.0f", json_number_value(v) / epochs);
    }
    for (size_t i = 0; i < 2; i++) {
        const double bytes = json_number_value(json_object_get(w, sizes[i])) / epochs;
        printf(" %10s", size_text(bytes));
    }
    for (size_t i = 0; i < 3; i++)
        printf(" %9.2f", 1e3 * json_number_value(json_object_get(w, times[i])) / epochs);
    printf("\n");
}

void stat_print_each_window(const json_t *training)
{
    const size_t n = json_array_size(json_object_get(training, "epochs"));
    size_t i;
    json_t *w;
    printf("\n  %6s %10s %10s %10s %10s %10s %10s %9s %9s %9s\n", "window", "rows", "kept",
           "arrived", "created", "read", "written", "open ms", "close ms", "stall ms");
    json_array_foreach(json_object_get(json_object_get(training, "windows"), "list"), i, w)
        print_window(i, w, n ? (double)n : 1);
    printf("  (means of an epoch, over %zu)\n", n);
}

static void print_forecast(const json_t *training)
{
    const json_t *f = json_object_get(training, "forecast");
    const json_t *windows = json_object_get(training, "windows");
    const json_t *epochs = json_object_get(training, "epochs");
    const size_t n = json_array_size(epochs);
    if (!n || !json_is_true(json_object_get(f, "feasible"))) return;
    const json_t *last = json_array_get(epochs, n - 1);
    const int device = json_is_object(json_object_get(training, "device"));
    char why[FORECAST_REASON];
    printf("  one epoch   %12s %12s %12s %12s %12s %9s\n", "read", "written", "I/Os", "requests",
           "moved", "seconds");
    printf("    forecast  %12s %12s %12s %12s %12s %9s\n", size_of(f, "read_bytes"),
           size_of(f, "written_bytes"), count_of(f, "ios"), device ? count_of(f, "requests") : "-",
           device ? size_of(f, "moved_bytes") : "-",
           device ? number_of(f, "disk_seconds", "%.2f") : "-");
    printf("    epoch %-3zu %12s %12s %12.0f %12s %12s %9s%s\n", n, size_of(last, "read_bytes"),
           size_of(last, "written_bytes"),
           json_number_value(json_object_get(last, "reads")) +
               json_number_value(json_object_get(last, "writes")),
           device ? count_of(last, "requests") : "-", device ? size_of(last, "moved_bytes") : "-",
           number_of(last, "seconds", "%.2f"),
           forecast_reason(number_at(windows, "merged_bytes"), number_at(f, "written_bytes"),
                           number_at(last, "written_bytes"), why));
}

void stat_print_tiers(const json_t *training)
{
    const json_t *tiers = json_object_get(training, "tiers");
    if (!json_is_object(tiers)) return; /* a store without tiers */
    printf("\ndevice: rows in all epochs, store %s\n", text_of(training, "store"));
    printf("  %s moved there, %s back, in %s windows; training waited for rows %s of the time\n",
           size_of(tiers, "in_bytes"), size_of(tiers, "out_bytes"), count_of(tiers, "windows"),
           percent_of(tiers, "waited_share"));
    printf("  it held %s of rows at a time, and the memory of the process %s\n",
           size_of(tiers, "bytes"), size_of(tiers, "memory_bytes"));
}

void stat_print_disk(const json_t *training, int details)
{
    const json_t *io = json_object_get(training, "io");
    const json_t *stalls = json_object_get(training, "stalls");
    const int moved = number_at(io, "reads") || number_at(io, "writes");
    if (!moved && !details) return;
    printf("\ndisk: rows in all epochs, store %s\n", text_of(training, "store"));
    printf("  %s read, %s written; training waited for rows %s s (%s), in %s of %s steps\n",
           size_of(io, "read_bytes"), size_of(io, "written_bytes"),
           number_of(stalls, "seconds", "%.2f"), percent_of(stalls, "share"),
           count_of(stalls, "stalled_steps"), count_of(stalls, "steps"));
    print_forecast(training);
    if (!details) return;
    print_io(training);
    print_blocks(json_object_get(training, "blocks"));
    print_device(json_object_get(training, "device"));
    print_windows(json_object_get(training, "windows"));
}
