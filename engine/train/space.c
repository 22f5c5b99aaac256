/* Room on disk that a run needs, by what it writes. */
#include "engine/train/space.h"

#include "base/folder/drps_manifest.h"
#include "storage/kv/drps_kv.h"
#include "storage/relay/drps_relay.h"

enum {
    USE_BYTES = 8, /* of a row in a step: about 4 in its window (drps_window.h), 2 of its slot */
    FOLDER_BYTES = 1 << 20, /* of folders, and of small files beside those that are counted */
};

uint64_t drps_space_of_store(const struct drps_memory *memory, uint64_t rows, uint64_t row_bytes)
{
    const uint64_t bytes = rows * row_bytes;
    if (!memory->relay_bytes && memory->store != &drps_store_pib) return 0;
    return memory->kv && memory->kv->training_only ? bytes + bytes / 2 : bytes;
}

uint64_t drps_space_of_store_more(const struct drps_memory *memory, uint64_t rows,
                                  uint64_t row_bytes, uint64_t row_uses, uint64_t seek_bytes)
{
    struct drps_relay_share share;
    if (!memory->relay_bytes) return memory->store == &drps_store_pib ? UINT64_MAX : 0;
    if (!seek_bytes) seek_bytes = memory->relay_bytes; /* buffers are as large as they may be */
    drps_relay_share(memory->relay_bytes, rows, row_bytes, seek_bytes, &share);
    return drps_sum(drps_relay_file_more(&share, rows, row_bytes),
                    drps_product(row_uses, USE_BYTES));
}

uint64_t drps_space_of_scan(const struct drps_memory *memory, uint64_t rows, uint64_t param_bytes)
{
    return memory->relay_bytes ? rows * (param_bytes + sizeof(uint32_t)) : 0;
}

uint64_t drps_space_still_needed(const struct drps_space *s)
{
    const uint64_t makes_way = s->store + s->scan;
    return (s->reserved ? 0 : s->store) + (s->database > makes_way ? s->database - makes_way : 0);
}

uint64_t drps_space_most(const struct drps_space *s)
{
    const uint64_t most = drps_sum(drps_space_needed(s), drps_sum(s->more, FOLDER_BYTES));
    return most == UINT64_MAX ? 0 : most;
}

uint64_t drps_space_needed(const struct drps_space *s)
{
    return (s->reserved ? s->store : 0) + s->scan + s->trained + s->from +
           drps_space_still_needed(s);
}
