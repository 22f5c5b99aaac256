/*
 * A model in memory of what a disk holds, as POSIX promises it: folders and files as they are now,
 * what of them is durable, and the changes between both. After a cut of the power each change that
 * is not durable may be found, or not, or in part. Private to power.c, which keeps a real folder
 * beside the model. Not for several threads at a time.
 */
#ifndef DRPS_TESTS_POWER_DISK_H
#define DRPS_TESTS_POWER_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Three views of the entries of a folder. */
enum disk_view {
    DISK_DURABLE,
    DISK_LIVE,  /* as every reader sees it while there is power */
    DISK_FOUND, /* after disk_choose(): what a machine finds that starts again */
    DISK_VIEWS
};

/* How a machine finds what was not durable. Any other number is a seed: some changes, in part. */
enum disk_choice { DISK_NOTHING = 0, DISK_EVERYTHING = 1 };

struct disk_change; /* of a file's bytes, or its size */

struct disk_entry {
    char *name; /* own */
    struct disk_node *node;
};

struct disk_entries {
    struct disk_entry *entry; /* own */
    size_t n, cap;
};

/* A file or a folder, whatever names it has. */
struct disk_node {
    struct disk_node *next; /* of all */
    uint64_t number;        /* of the nodes before it */
    int folder;
    int outside; /* somebody changes it beside the model: its bytes are those of the real file */
    struct disk_entries entries[DISK_VIEWS];
    unsigned char *data; /* own [bytes]: of a file, durable */
    size_t bytes;
    struct disk_change *changes, **last; /* own: not durable, the first first */
};

struct disk_op; /* of a folder's entries */

struct disk {
    struct disk_node *root, *all; /* own */
    struct disk_op *ops, **last;  /* own: not durable, the first first */
};

void disk_init(struct disk *d);
void disk_destroy(struct disk *d);

struct disk_node *disk_node_new(struct disk *d, int folder);

/* The entry of that name, or NULL. */
struct disk_node *disk_find(const struct disk_node *folder, enum disk_view view, const char *name);

/* Change entries. They must be there, as the real call has succeeded. */
void disk_link(struct disk *d, struct disk_node *folder, const char *name, struct disk_node *node);
void disk_unlink(struct disk *d, struct disk_node *folder, const char *name);
void disk_rename(struct disk *d, struct disk_node *from, const char *name, struct disk_node *to,
                 const char *new_name);
void disk_exchange(struct disk *d, struct disk_node *a, const char *name, struct disk_node *b,
                   const char *other);

/* Change a file: its bytes, its size, or a size that it has at least. */
void disk_write(struct disk_node *file, const struct iovec *pieces, int pieces_n, size_t bytes,
                uint64_t offset);
/* A write that takes time: a sync before its end leaves it as it is, neither whole nor lost. It
 * ends with so many of its bytes, 1 or more. Nothing happens to one that was lost. */
void disk_begin_write(struct disk_node *file, const struct iovec *pieces, int pieces_n,
                      size_t bytes, uint64_t offset);
void disk_end_write(struct disk_node *file, uint64_t offset, size_t bytes);
void disk_resize(struct disk_node *file, uint64_t size);
void disk_grow(struct disk_node *file, uint64_t size);

/* All bytes of a file are these, instead of what was known to have changed. */
void disk_replace(struct disk_node *file, const void *data, size_t bytes);

/* Make a file's bytes durable; or lose them: they are in no later sync either. */
void disk_sync_file(struct disk_node *file);
void disk_lose_file(struct disk_node *file);

/* Make a folder's entries durable, and all changes without which these could not be. A rename
 * between two folders is durable when the one that it goes to is. */
void disk_sync_folder(struct disk *d, struct disk_node *folder);

/* Fill DISK_FOUND: each operation on a folder is found or not, those on one name in their order. */
void disk_choose(struct disk *d, uint64_t choice);

/* A number for all that is found below a folder, after disk_choose(): equal for equal trees. */
uint64_t disk_found_sum(const struct disk_node *folder, uint64_t choice);

/* The bytes of a file after a cut: each change is found or not, writes also in some of their
 * sectors. free() the result. */
unsigned char *disk_found_bytes(const struct disk_node *file, uint64_t choice, size_t *bytes_out);

#endif
