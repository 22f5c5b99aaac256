/*
 * Slots of the transit file: which hold a chunk, in what order a stream's follow each other, and
 * the length and checksum of each. The vacant ones are taken in turn, round the file. Private to
 * storage/relay/.
 */
#ifndef DRPS_STORAGE_RELAY_CHUNK_MAP_H
#define DRPS_STORAGE_RELAY_CHUNK_MAP_H

#include <stdint.h>

#define DRPS_NO_SLOT UINT32_MAX

struct drps_chunk_map {
    uint64_t n;
    uint64_t *sums;   /* own: [n] checksum of each chunk written */
    uint32_t *bytes;  /* own: [n] of each: what the stream has there */
    uint32_t *next;   /* own: [n] the slot that follows in its stream */
    uint64_t *vacant; /* own: bit i: slot i holds no chunk */
    uint64_t *busy;   /* own: bit i: slot i is being written */
    uint64_t cursor;  /* the slot where the next request may begin */
};

/* A stream's slots, in order. */
struct drps_slot_list {
    uint32_t first, last; /* DRPS_NO_SLOT: none */
};

/* 0 or -ENOMEM; drps_chunk_map_destroy() is yours in both cases. n < DRPS_NO_SLOT. */
int drps_chunk_map_init(struct drps_chunk_map *slots, uint64_t n);
void drps_chunk_map_destroy(struct drps_chunk_map *slots);

/* The next vacant slots behind the cursor, which goes round the file: as many as lie side by side,
 * n at most. They are taken. *n_out 0: none is left. */
uint64_t drps_chunk_map_take(struct drps_chunk_map *slots, uint32_t n, uint32_t *n_out);

/* A slot that was taken, with the list's last chunk, which is being written from now on. */
void drps_chunk_map_append(struct drps_chunk_map *slots, struct drps_slot_list *list, uint32_t slot,
                           uint32_t bytes, uint64_t sum);
void drps_chunk_map_written(struct drps_chunk_map *slots, uint32_t slot);
int drps_chunk_map_is_busy(const struct drps_chunk_map *slots, uint32_t slot);

/* The list's first slot is vacant again. */
void drps_chunk_map_give_back(struct drps_chunk_map *slots, struct drps_slot_list *list);

#endif
