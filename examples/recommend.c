/*
 * The best items for users of a model of ratings, from memory.
 *
 *     cc recommend.c $(pkg-config --cflags --libs drps) -o recommend
 *     ./recommend MODEL USER...        prints user, item and score
 */
#include <stdio.h>

#include <drps.h>

enum { ITEMS = 5 };

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *model = NULL;
    uint32_t items[ITEMS];
    double scores[ITEMS];
    if (argc < 3) {
        fprintf(stderr, "Usage: %s MODEL USER...\n", argv[0]);
        return 2;
    }
    int rc = drps_predictor_open(argv[1], 0, &model, &err);
    for (int u = 2; u < argc && rc == 0; u++) {
        const char *user = argv[u];
        rc = drps_predictor_recommend(model, &user, 1, NULL, ITEMS, items, scores, &err);
        for (int i = 0; i < ITEMS && rc == 0 && items[i] != DRPS_NO_ITEM; i++)
            printf("%s\t%s\t%.9g\n", user, drps_predictor_item(model, items[i]), scores[i]);
    }
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    drps_predictor_close(model);
    return rc < 0;
}
