/*
 * How long does RocksDB's own checkpoint of a database take? Opens the database that a killed
 * training run has left (MODEL.partial/store/blocks), makes a checkpoint beside it, and prints
 * seconds and bytes. Its files are second names; what has to be written is what was only in memory.
 * What was lost with the process is not in it.
 *
 *   bench_rocksdb_checkpoint DATABASE NEW_FOLDER
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <rocksdb/c.h>

#include "base/drps_clock.h"
#include "base/drps_io.h"

static uint64_t bytes_in(const char *path)
{
    uint64_t bytes = 0;
    const struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        struct stat st;
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size;
    }
    if (dir) (void)closedir(dir);
    return bytes;
}

/* Returns 1 and says so if the call before has failed. */
static int failed(const char *what, const char *error)
{
    if (error) (void)fprintf(stderr, "bench_rocksdb_checkpoint: cannot %s: %s\n", what, error);
    return error != NULL;
}

static int checkpoint(rocksdb_t *db, const char *path)
{
    char *error = NULL;
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(db, &error);
    if (failed("prepare a checkpoint", error)) return 1;
    const uint64_t start = drps_clock_ns();
    rocksdb_checkpoint_create(c, path, 0, &error); /* 0: the memory table is written, too */
    const uint64_t took = drps_clock_ns() - start;
    rocksdb_checkpoint_object_destroy(c);
    if (failed("make the checkpoint", error)) return 1;
    printf("{\"seconds\": %.3f, \"bytes\": %" PRIu64 "}\n", (double)took * 1e-9, bytes_in(path));
    return 0;
}

int main(int argc, char **argv)
{
    char *error = NULL;
    if (argc != 3) {
        (void)fprintf(stderr, "Usage: bench_rocksdb_checkpoint DATABASE NEW_FOLDER\n");
        return 2;
    }
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_t *db = rocksdb_open(options, argv[1], &error);
    int rc = failed("open the database", error);
    if (!rc) rc = checkpoint(db, argv[2]);
    if (db) rocksdb_close(db);
    rocksdb_options_destroy(options);
    return rc;
}
