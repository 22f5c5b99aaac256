/* Names a plan for several ranks after the hashes of its parts (drps_whole.h). */
#include "index/ranks/drps_whole.h"

#include <stdio.h>

#include "base/drps_checksum.h"
#include "index/plan/drps_plan_files.h"

int drps_whole_hash_rank(const struct drps_io *io, const char *dir,
                         const struct drps_plan_info *info, uint64_t *hash_out,
                         struct drps_err *err)
{
    const char *names[DRPS_PLAN_FILES];
    size_t n = 0;
    for (size_t i = 0; i < DRPS_PLAN_FILES; i++) {
        const uint32_t kind = drps_plan_files[i].kind;
        const int of_steps = kind == DRPS_KIND_DATA || kind == DRPS_KIND_ROWS ||
                             kind == DRPS_KIND_SHARES || kind == DRPS_KIND_POSITIONS;
        if (of_steps && drps_plan_has_file(info, i)) names[n++] = drps_plan_files[i].name;
    }
    return drps_plan_hash(io, dir, names, n, hash_out, err);
}

int drps_whole_hash_names(const struct drps_io *io, const char *dir, uint64_t *hash_out,
                          struct drps_err *err)
{
    static const char *const names[] = {DRPS_FILE_NAMES};
    return drps_plan_hash(io, dir, names, 1, hash_out, err);
}

/* Where all ranks are alike their number says it all. */
static uint64_t shape_hash(const struct drps_plan_ranks *ranks, uint64_t owners)
{
    const uint64_t shape[3] = {owners, ranks->workers, ranks->first_worker};
    return drps_ranks_are_alike(ranks) ? owners : drps_checksum(shape, sizeof(shape));
}

static uint64_t handed_hash(const struct whole_parts *parts, uint64_t hash)
{
    const uint64_t handed[3] = {hash, parts->hand_on, parts->hand_on_states};
    return parts->hand_on ? drps_checksum(handed, sizeof(handed)) : hash;
}

void drps_whole_name(const struct whole_parts *parts, struct drps_plan_info *info)
{
    struct drps_plan_ranks *ranks = &info->ranks;
    const uint64_t owners = drps_checksum(parts->first, (ranks->count + 1) * sizeof(*parts->first));
    const uint64_t shape = handed_hash(parts, shape_hash(ranks, owners));
    const uint64_t hash[3] = {
        drps_checksum(parts->rank_hash, ranks->count * sizeof(*parts->rank_hash)),
        parts->names_hash, drps_plan_hash_text(info, shape)};
    (void)snprintf(ranks->whole, sizeof(ranks->whole), "%016llx",
                   (unsigned long long)drps_checksum(hash, sizeof(hash)));
}
