# shellcheck shell=bash
# Nets on several ranks: their data, and what drps-train says of a run. Source it after lib.sh.

# clicks SAMPLES SEED VALUES: the label of a sample of three fields says whether its first two are alike; the third, of so many values, is
# noise.
clicks() {
    awk -v n="$1" -v seed="$2" -v values="$3" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
        a = int(rand() * 6); b = int(rand() * 6)
        print (a % 2 == b % 2) + 0, "0:" 1 + a ":1 1:" 11 + b ":1 2:" 21 + int(rand() * values) ":1" } }'
}
index() { "$tools/drps-index" "$@" --quiet --force; }
# train PLAN OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" "$@" --force --quiet --json >train.json; }
content() { value content <train.json; }
losses() { all_values train_loss <train.json && all_values test_loss <train.json; }
as_forecast() { # WHAT
    local kind
    for kind in sent received; do
        [[ $(all_values ${kind}_bytes <train.json) = "$(all_values forecast_${kind}_bytes <train.json)" ]] ||
            fail "$1: $kind $(all_values ${kind}_bytes <train.json | xargs), forecast $(all_values forecast_${kind}_bytes <train.json | xargs)"
    done
}
