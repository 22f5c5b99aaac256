/* The list of engines that this build has, and the names of the files that they make. */
#include "storage/kv/kv_internal.h"

#include <string.h>

static const struct drps_kv_ops *const engines[] = {
#ifdef DRPS_WITH_ROCKSDB
    &drps_kv_rocksdb,
#endif
#ifdef DRPS_WITH_LEVELDB
    &drps_kv_leveldb,
#endif
    &drps_kv_file,
    NULL,
};

/* Source: RocksDB file/filename.cc, LevelDB db/filename.cc. */
const struct drps_owned drps_kv_owned[] = {
    {.name = "CURRENT"},    {.name = "IDENTITY"},  {.name = "LOCK"},
    {.name = "LOG"},        {.name = "LOG.old"},   {.name = "LOG.old.#"},
    {.name = "MANIFEST-#"}, {.name = "OPTIONS-#"}, {.name = "OPTIONS-#.dbtmp"},
    {.name = "#.dbtmp"},    {.name = "#.log"},     {.name = "#.sst"},
    {.name = "#.ldb"},      {.name = "#.blob"},    {.name = DRPS_ROCKSDB_BULK_FILE "#.sst"},
    {.name = NULL},
};

const struct drps_kv_ops *const *drps_kv_engines(void)
{
    return engines;
}

const struct drps_kv_ops *drps_kv_find(const char *name)
{
    for (size_t i = 0; engines[i]; i++)
        if (!strcmp(engines[i]->name, name)) return engines[i];
    return NULL;
}
