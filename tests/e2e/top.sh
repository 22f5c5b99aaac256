#!/usr/bin/env bash
# drps-top follows jobs by the folder that they make, by a file and by a port; in a terminal it waits, draws, takes another size, says
# that a job has ended, and leaves without touching it.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" matrix --users 2K --items 500 --ratings 40K --seed 3 -o data.tsv --quiet
"$tools/drps-index" data.tsv --algo lmf --factors 4 --test-fraction 0.1 --workers 2 --order shuffled --partition range -o ranks --quiet
pids=()
end() {
    local pid
    for pid in "${pids[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
    if [[ -n ${terminal:-} ]]; then tmux -L "$terminal" kill-server 2>/dev/null || true; fi
    wait || true
    rm -rf "$work"
}
trap end EXIT
# train: trains two ranks until it is told to stop, and waits until both show their numbers; $job is its process
train() {
    "$tools/drps-train" ranks -o model --force --local 2 --epochs 100000 --memory 128M --quiet --metrics-file run.prom 2>train.txt &
    job=$!
    pids+=("$job")
    local file
    for file in model.partial/metrics.prom model.rank-1.partial/metrics.prom; do
        until grep -q '^drps_train_epoch{rank="[01]"} [1-9]' $file 2>/dev/null; do kill -0 $job || fail "$(cat train.txt)"; pause; done
    done
}
# stop: stops it
stop() {
    kill -INT $job
    wait $job || [[ $? = 130 ]] || fail "the job ended with $?: $(cat train.txt)"
}

# As text
fails 1 "no job that makes model shows its numbers" "$tools/drps-top" model --once
fails 2 "name a model or a plan" "$tools/drps-top"
fails 2 "delay" "$tools/drps-top" model --delay 0
train
for names in model model/ "run.rank-0.prom run.rank-1.prom"; do
    # shellcheck disable=SC2086  # they are words
    "$tools/drps-top" $names --once --delay 2.5 >once.txt || fail "drps-top $names"
    for pattern in '^epoch +[0-9]+ of 100000 \[[#.]+\] (train|evaluate); ' '^samples +[0-9,]+ a second; rate 0.1' '^loss +[0-9.]+ now, [0-9.]+ last epoch, [0-9.]+ on test' \
        '^memory +[0-9.]+ MiB of 256.0 MiB' '^resident +' '^waiting +' '^ahead' '^links +[0-9.]+ [KMG]iB/s, [0-9,]+ messages/s; most from [01] to [01], [0-9.]+ [KMG]iB/s$' '^rank ' '^ +0 ' '^ +1 +[0-9,]+ .*iB/s$'; do
        grep -qE -- "$pattern" once.txt || fail "drps-top $names does not show '$pattern' but: $(cat once.txt)"
    done
    awk 'length > 80 {exit 1}' once.txt || fail "lines are too long: $(cat once.txt)"
done
"$tools/drps-top" model --json >once.json
[[ $(all_values name <once.json | grep -cx drps_train_samples_total) = 2 ]] || fail "json: $(head -50 once.json)"
kill -0 $job || fail "the job has ended"
stop
echo "ok text"

# In a terminal
command -v tmux >/dev/null || skip "tmux is not installed"
fails 2 "no ncurses|there is no terminal to draw on" "$tools/drps-top" model </dev/null
grep -q "no ncurses" err.txt && skip "this build has no ncurses"
terminal=drps-$$
tmux -L $terminal -f /dev/null new-session -d -x 80 -y 24 "$tools/drps-top model run.none 2>top.txt; echo ended with \$? >status.txt"
# screen PATTERN: waits until it is shown
screen() {
    local shown="" i
    for ((i = 0; i < 600; i++)); do
        shown=$(tmux -L $terminal capture-pane -p 2>/dev/null) || fail "drps-top has ended: $(cat top.txt status.txt)"
        if grep -qE -- "$1" <<<"$shown"; then return 0; fi
        read -r -t 0.1 <> <(:) || true # until it is drawn again
    done
    fail "'$1' is not shown, but: $shown"
}
screen "drps-top +model run.none: waiting for a job to begin"
train
screen "^epoch +[0-9]+ of 100000"
screen "\|.*\*" # the curve
screen "^ +1 +[0-9,]+ "
tmux -L $terminal resize-window -x 50 -y 12
screen "^epoch +[0-9]+ of 100000"
[[ $(tmux -L $terminal capture-pane -p | wc -l) -le 12 ]] || fail "the screen is larger than 12 lines"
tmux -L $terminal resize-window -x 120 -y 40
screen "^ +1 +[0-9,]+ "
stop
screen "the job has ended"
tmux -L $terminal send-keys q
until [[ -s status.txt ]]; do pause; done
[[ $(cat status.txt) = "ended with 0" ]] || fail "q: $(cat status.txt top.txt)"
# Ctrl-C, and a terminal without colours
rm -rf status.txt model model.checkpoint
train
tmux -L $terminal -f /dev/null new-session -d -x 80 -y 24 "TERM=vt100 $tools/drps-top model 2>top.txt; echo ended with \$? >status.txt"
screen "^epoch +[0-9]+ of 100000"
tmux -L $terminal send-keys C-c
until [[ -s status.txt ]]; do pause; done
[[ $(cat status.txt) = "ended with 0" ]] || fail "Ctrl-C: $(cat status.txt top.txt)"
kill -0 $job || fail "the job has ended with drps-top"
stop
echo "ok terminal"
