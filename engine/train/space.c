/* Room on disk that a run needs, by what it writes. */
#include "engine/train/space.h"

#include "storage/kv/drps_kv.h"

uint64_t drps_space_of_store(const struct drps_memory *memory, uint64_t rows, uint64_t row_bytes)
{
    const uint64_t bytes = rows * row_bytes;
    if (!memory->relay_bytes && memory->store != &drps_store_pib) return 0;
    return memory->kv && memory->kv->training_only ? bytes + bytes / 2 : bytes;
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

uint64_t drps_space_needed(const struct drps_space *s)
{
    return (s->reserved ? s->store : 0) + s->scan + s->trained + s->from +
           drps_space_still_needed(s);
}
