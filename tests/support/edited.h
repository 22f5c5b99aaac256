/*
 * Folders of plans and models, edited by a script and signed anew: what a fuzz target of a whole
 * tool gives it to read. A script is bytes, and every byte string is one: a reader that is at its
 * end reads zeros.
 *
 * An edit is a byte that says what, and operands. Edits of the same folder follow each other until
 * the script ends. Even codes change a manifest (plan.json, model.json): the k-th of its values
 * becomes another one, or goes. Odd codes change a record file: bytes of a record, or its records.
 * Then every checksum is made right: of records, of the front of windows, of files, of manifests.
 *
 * Fails the process when the system refuses.
 */
#ifndef DRPS_TESTS_EDITED_H
#define DRPS_TESTS_EDITED_H

#include <stddef.h>
#include <stdint.h>

struct script {
    const uint8_t *at;
    size_t left;
};
uint8_t script_byte(struct script *s);
uint64_t script_number(struct script *s, unsigned bytes); /* little-endian */

struct edited; /* opaque: a folder as it was read, and folders below it */

/* Read `dir`: manifests and record files are taken apart, any other file is one record; the folder
 * `raw` (NULL: none) is left out. */
struct edited *edited_read(const char *dir, const char *raw);
void edited_free(struct edited *e);

/* Write the folder anew as `dir`, which must not be there, with the script's edits. */
void edited_write(const struct edited *e, struct script *s, const char *dir);

/* Remove a folder, if it is there. */
void edited_remove(const char *dir);

#endif
