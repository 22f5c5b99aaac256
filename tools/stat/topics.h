/* The largest words of each topic, for drps-stat --topics. Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_TOPICS_H
#define DRPS_TOOLS_STAT_TOPICS_H

#include "engine/publish/drps_modeldir.h"
#include "tools/drps_cli.h"

enum { STAT_TOPIC_WORDS_MOST = 1000 };

/*
 * Print the `words` words of the largest weights of each topic, largest first, of the open model in
 * the folder `path`; as JSON where --json is given. names: a file whose line i is the word with
 * number i, from 1; NULL: words are shown as numbers. Memory: 16 bytes for each word shown, and the
 * file of names. DRPS_E_CONFIG: the model has no topics.
 */
DRPS_MUST_CHECK
int stat_print_topics(struct drps_cli *cli, const struct drps_io *io, const char *path,
                      struct drps_modeldir *md, size_t words, const char *names,
                      struct drps_err *err);

#endif
