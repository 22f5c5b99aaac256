/* The memory of the process that rows in tiers take, in the store below and beside it. */
#include "storage/device/drps_device_rows.h"
#include "storage/device/tiered.h"

enum {
    ROW_TABLES = 40 /* for a row of two windows: places and distances in both of them; slots;
                       places and frames of rows that come and leave; frames of a step */
};

/* Rows that have a place in a store below of so many bytes, at most. */
static uint64_t places_of(const struct drps_store_config *config, uint64_t below_bytes)
{
    const uint64_t places = below_bytes / config->row_bytes + 1;
    return places < config->rows ? places : config->rows;
}

/* What is kept beside such a store. */
static uint64_t tables(const struct drps_store_config *config, uint64_t below_bytes)
{
    const uint64_t places = places_of(config, below_bytes);
    const uint64_t frames = config->device_frames < places ? config->device_frames : places;
    return frames_memory(places, frames, config->epoch_steps) +
           config->epoch_steps * sizeof(uint64_t) + frames * ROW_TABLES +
           mover_host_bytes(config->row_bytes, config->rows);
}

static int need(const struct drps_store_ops *below, const struct drps_store_config *config,
                uint64_t *least_out, uint64_t *most_out, struct drps_err *err)
{
    int rc = below->memory_need(config, least_out, most_out, err);
    if (rc < 0) return rc;
    *least_out += tables(config, *least_out);
    *most_out += tables(config, *most_out);
    return 0;
}

int tiered_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                       uint64_t *most_out, struct drps_err *err)
{
    return need(&drps_store_resident, config, least_out, most_out, err);
}

int tiered_disk_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                            uint64_t *most_out, struct drps_err *err)
{
    return need(&drps_store_relay, config, least_out, most_out, err);
}

uint64_t drps_tiered_below_bytes(const struct drps_store_config *config)
{
    uint64_t fits = 0, most = config->memory_bytes;
    while (fits < most) {
        const uint64_t middle = most - (most - fits) / 2;
        if (middle + tables(config, middle) <= config->memory_bytes)
            fits = middle;
        else
            most = middle - 1;
    }
    return fits;
}
