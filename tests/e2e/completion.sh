#!/usr/bin/env bash
# Completion in bash and zsh: it has every option of every tool, and the words of options that take one of a few.
. "$(dirname "$0")/lib.sh"
folder=$tools/../completion
mapfile -t all < <(cd "$tools" && ls -d drps-*)
((${#all[@]} >= 8)) || fail "only ${#all[@]} tools: ${all[*]}"

# complete WORD...: what bash offers for the last word
complete_words() {
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_${1//-/_}"; printf "%s\n" "${COMPREPLY[@]}"' "$folder/bash/$1" "$@"
}

options=0
for tool in "${all[@]}"; do
    [[ -f $folder/bash/$tool && -f $folder/zsh/_$tool ]] || fail "$tool has no completion"
    "$tools/$tool" --help >"help-$tool"
    # argp prints every option here too, in another form than in --help
    "$tools/$tool" --usage | grep -oE -- '--[a-z0-9][a-z0-9-]*' | sort -u >want
    complete_words "$tool" -- | sed '/^$/d' | sort -u >got
    diff want got >differ || fail "$tool, bash: $(cat differ)"
    grep -oE -- "^    .*--[a-z0-9-]+" "$folder/zsh/_$tool" | sed -E "s/\[.*//" | grep -oE -- '--[a-z0-9-]+' | sort -u >got
    diff want got >differ || fail "$tool, zsh: $(cat differ)"
    options=$((options + $(wc -l <want)))
done

# words.txt: each option is one of the tool's, and its help has each word.
words=0
while read -r tool option list; do
    for help in $([[ $tool = '*' ]] && echo help-* || echo "help-$tool"); do
        text=$(awk -v o="$option" '/^  (    |-., )--/ { on = $0 ~ "(^| )" o "[ =]" } /^ *$/ { on = 0 } on' "$help")
        [[ -n $text || $tool = '*' ]] || fail "words.txt: $tool has no $option"
        [[ -n $text && $(grep -c "^${help#help-} $option " "$source/tools/completion/words.txt") -le $([[ $tool = '*' ]] && echo 0 || echo 1) ]] || continue
        for word in $list; do
            grep -qwF -- "$word" <<<"$text" || fail "words.txt: $word is not in the help of $tool $option"
            words=$((words + 1))
        done
    done
done < <(grep -v '^#' "$source/tools/completion/words.txt")
((words > 80)) || fail "only $words words were looked at"

[[ $(complete_words drps-train --store re | xargs) = "resident relay" ]] || fail "--store re: $(complete_words drps-train --store re)"
[[ $(complete_words drps-train --store = res | xargs) = resident ]] || fail "--store=res"
[[ $(complete_words drps-index --algo lo | xargs) = lor ]] || fail "--algo lo"
[[ -z $(complete_words drps-train --epochs 1) ]] || fail "--epochs takes a number"
touch "some plan" other
[[ $(complete_words drps-train some) = "some plan" && $(complete_words drps-train --from oth) = other ]] || fail "files"
echo "ok $options options, $words words in bash"

command -v zsh >/dev/null || skip "zsh is not installed: its files were compared, but not read by it"
for tool in "${all[@]}"; do
    zsh -n "$folder/zsh/_$tool" || fail "$tool: zsh cannot read its completion"
done
echo "ok zsh"
