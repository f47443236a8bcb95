# Completion of slope for bash. Made by scripts/command_pages.py.
_slope() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flags=
    if [ "$COMP_CWORD" = 1 ] || { [ "$COMP_CWORD" = 2 ] && [ "$before" = help ]; }; then
        COMPREPLY=($(compgen -W "run check build gradcheck dump explain help version" -- "$word") $(compgen -f -X '!*.slang' -- "$word"))
        return
    fi
    case $before in
    -target | --target) COMPREPLY=($(compgen -W "llvm-ir asm obj shared exe c slang cuda ptx ptx-nvrtc" -- "$word")); return ;;
    --fp) COMPREPLY=($(compgen -W "strict contract fast" -- "$word")); return ;;
    -I) COMPREPLY=($(compgen -d -- "$word")); return ;;
    esac
    case ${COMP_WORDS[1]} in
    run) flags="--help --json --color --time -I -D --conformance --link --error-limit -w --Werror --portable --limit-memory --limit-time --watch --report-checkpoints -O -g --fp --lanes --remarks --interpret --cache --no-cache --unchecked --entry --dispatch --block --wave --bind --set --print --show --save --stack --device --device-code --threads --tape --strict" ;;
    check) flags="--help --json --color --time -I -D --conformance --link --error-limit -w --Werror --portable --limit-memory --limit-time --watch --report-checkpoints" ;;
    build) flags="--help --json --color --time -I -D --conformance --link --error-limit -w --Werror --portable --limit-memory --limit-time --watch --report-checkpoints -O -g --fp --lanes --remarks --unchecked --entry --block --wave --threads --target -o --header --sanitize --openmp --lines --comments --side-by-side --tape --stage --profile -f" ;;
    gradcheck) flags="--help --json --color --time -I -D --conformance --link --error-limit -w --Werror --portable --limit-memory --limit-time --watch --report-checkpoints -O --fp --interpret --cache --no-cache --unchecked --bind --set --stack --samples --tolerance --at --range --time-limit --seed --strict -f" ;;
    dump) flags="--help --json --color --time -I -D --conformance --link --error-limit -w --Werror --portable --limit-memory --limit-time --watch --report-checkpoints -O -g --lanes --remarks --unchecked -f --after" ;;
    explain) flags="--help --json --color --time -I -D --conformance --link --error-limit -w --Werror --portable --limit-memory --limit-time --watch --report-checkpoints" ;;
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -X '!*.slang' -- "$word") $(compgen -d -- "$word")) ;;
    esac
}
complete -o filenames -F _slope slope
