/*
 * The command line of a program, as a text that a shell reads back, in the manifest of what the
 * program has made. It is for people; nothing depends on it. A manifest may lack it: an earlier
 * version has made it, or a library was called.
 */
#ifndef DRPS_BASE_FOLDER_COMMAND_H
#define DRPS_BASE_FOLDER_COMMAND_H

#include <jansson.h>

#include "base/drps_err.h"

enum { DRPS_COMMAND_BYTES = 4096 };

/* Write `program` and the words argv[1 .. argc - 1], quoted where a shell needs it. What is no
 * UTF-8, and each control character, becomes U+FFFD. Where `out` is too small the text ends with
 * " ..." behind a whole word. Returns `out`. */
char *drps_command_text(const char *program, int argc, char *const *argv,
                        char out[DRPS_COMMAND_BYTES]);

/* Add the member `key`; nothing where `command` is NULL or empty. *j as drps_manifest_put() takes
 * it. */
void drps_command_put(json_t **j, const char *key, const char *command);

/* Read the member `key`; *out is NULL where it is missing, else borrowed from `j`. DRPS_E_CORRUPT:
 * it is no text, is too long, or has control characters; the error names `path` and `key`. */
DRPS_MUST_CHECK
int drps_command_get(const json_t *j, const char *key, const char *path, const char **out,
                     struct drps_err *err);

#endif
