/*
 * The chunk map: which chunks of the run file are free, and for each that is not its length, its
 * checksum, which window needs it first and the chunk that follows it in its run. It is memory
 * alone; runs_io.c does the I/O.
 * Private to storage/relay/runs/.
 *
 * The file has room for n chunks of one size, numbered 0 .. n - 1. Free ones are taken in turn,
 * round the file, so that what is written together lies together.
 *
 * A save (storage/relay/save.h) *pins* the chunks that runs have at its time: such a chunk is
 * not free again, though its run gives it back, before the save lets go of it. Saves are
 * numbered; a chunk may be pinned by several.
 */
#ifndef DRPS_STORAGE_RELAY_RUNS_CHUNK_MAP_H
#define DRPS_STORAGE_RELAY_RUNS_CHUNK_MAP_H

#include <stddef.h>
#include <stdint.h>

enum { DRPS_CHUNK_SAVES = 8 }; /* saves at a time; numbered from 0 on */

#define DRPS_NO_CHUNK UINT32_MAX

struct drps_chunk_map {
    uint64_t n;
    uint64_t *sums;  /* own: [n] checksum of what was written there */
    uint32_t *bytes; /* own: [n] how much of the chunk its run uses */
    uint64_t *needs; /* own: [n] the window of the section that the chunk begins within or with */
    uint32_t *next;  /* own: [n] the chunk that follows in its run; DRPS_NO_CHUNK: none yet */
    uint8_t *pins;   /* own: [n] bit k: save k pins the chunk */
    uint64_t *taken; /* own: bit i: a run has chunk i */
    uint64_t *free;  /* own: bit i: no run and no save has chunk i */
    uint64_t *busy;  /* own: bit i: chunk i is being written */
    uint64_t cursor; /* the chunk where the next request may begin */
};

/* The chunks of one run, in order, linked by drps_chunk_map.next. */
struct drps_chunk_list {
    uint32_t first, last; /* DRPS_NO_CHUNK: none */
};

/* Returns the bytes of memory that a map of n chunks takes. */
uint64_t drps_chunk_map_bytes(uint64_t n);

/* All chunks are free. 0 or -ENOMEM; drps_chunk_map_destroy() is yours in both cases. n <
 * DRPS_NO_CHUNK. */
int drps_chunk_map_init(struct drps_chunk_map *map, uint64_t n);
void drps_chunk_map_destroy(struct drps_chunk_map *map);

/* Take free chunks that lie side by side: n of them, where one of the next gaps behind the cursor
 * has as many; else the longest of these gaps. The cursor goes round the file. Returns the first
 * one's number; *n_out is 0 when no chunk is free. */
uint64_t drps_chunk_map_take(struct drps_chunk_map *map, uint32_t n, uint32_t *n_out);

/* A chunk that was taken becomes the list's last one. It is busy until drps_chunk_map_written(). */
void drps_chunk_map_append(struct drps_chunk_map *map, struct drps_chunk_list *list, uint32_t chunk,
                           uint32_t bytes, uint64_t sum, uint64_t need);
void drps_chunk_map_written(struct drps_chunk_map *map, uint32_t chunk);
int drps_chunk_map_is_busy(const struct drps_chunk_map *map, uint32_t chunk);

/* The list's first chunk leaves the list, and is free again unless a save pins it. */
void drps_chunk_map_give_back(struct drps_chunk_map *map, struct drps_chunk_list *list);

/* ---- Pins ---- */

/* There are n chunks from now on, no fewer than before. 0, or -ENOMEM and the map is as it was. */
int drps_chunk_map_grow(struct drps_chunk_map *map, uint64_t n);

/* Save `save` pins all chunks that runs have, or one chunk that is taken or not. */
void drps_chunk_map_pin_taken(struct drps_chunk_map *map, unsigned save);
void drps_chunk_map_pin(struct drps_chunk_map *map, uint32_t chunk, unsigned save);
/* Save `save` pins nothing any more. */
void drps_chunk_map_unpin(struct drps_chunk_map *map, unsigned save);

int drps_chunk_map_is_taken(const struct drps_chunk_map *map, uint32_t chunk);
int drps_chunk_map_is_pinned(const struct drps_chunk_map *map, uint32_t chunk);

/* Returns how many chunks are pinned, or would be if another save pinned all that are taken. */
uint64_t drps_chunk_map_kept(const struct drps_chunk_map *map);

#endif
