/*
 * main() of a fuzz target that replays inputs: the files and folders named on the command line.
 * Included last, under DRPS_FUZZ_MAIN.
 */
#ifndef DRPS_TESTS_FUZZ_MAIN_H
#define DRPS_TESTS_FUZZ_MAIN_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_io.h"

static int replay_file(const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    char *data;
    size_t n;

    if (drps_io_read_file(drps_io_os(), path, 64 << 20, &data, &n, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read beyond the end */
    if (exact) {
        memcpy(exact, data, n);
        (void)LLVMFuzzerTestOneInput(exact, n); /* always 0; faults abort */
    }
    free(exact);
    free(data);
    return exact ? 0 : -1;
}

static int replay_folder(const char *path, size_t *count)
{
    int rc = 0;
    DIR *dir = opendir(path);
    if (!dir) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    for (const struct dirent *e; rc == 0 && (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        char *file = drps_path_join(path, e->d_name);
        rc = file ? replay_file(file) : -1;
        free(file);
        ++*count;
    }
    (void)closedir(dir); /* only read */
    return rc;
}

int main(int argc, char **argv)
{
    size_t count = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;
        int folder = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
        if ((folder ? replay_folder(argv[i], &count) : replay_file(argv[i])) < 0) return 1;
        count += !folder;
    }
    (void)printf("%zu inputs replayed\n", count);
    return count == 0; /* an empty corpus is a mistake */
}

#endif
