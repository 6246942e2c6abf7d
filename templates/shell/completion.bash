# bash completion for backendgen. Made by `backendgen completion bash`.

# These three offer words for `current`, a variable of _backendgen.
_backendgen_words() {
  COMPREPLY=($(compgen -P "$head" -W "$1" -- "$current"))
}

_backendgen_paths() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -P "$head" "$1" -- "$current"))
}

_backendgen_programs() {
  local IFS=$'\n'
  if [[ $current == */* ]]; then
    _backendgen_paths -f
  else
    COMPREPLY=($(compgen -P "$head" -c -- "$current"))
  fi
}

_backendgen() {
  local IFS=$' \t\n'
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} head=
  local command= count=0 index word

  # Where `=` separates words, `--format=js` arrives as three of them.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $current == --*=* ]]; then
    previous=${current%%=*} head=$previous= current=${current#*=}
  fi

  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${COMP_WORDS[index]}
    case $command:$word in
{{#leading}}
      *:{{typed}}) [[ ${COMP_WORDS[index+1]} == = ]] && ((index++)); ((index++)) ;;
{{/leading}}
{{#commands}}
{{#options}}
{{#takes_value}}
      {{name}}:{{typed}}) [[ ${COMP_WORDS[index+1]} == = ]] && ((index++)); ((index++)) ;;
{{/takes_value}}
{{/options}}
{{/commands}}
      *:-?*) ;;
      :*) command=$word ;;
      *) ((count++)) ;;
    esac
  done

  case $command:$previous in
{{#leading}}
    *:{{typed}}) {{bash_offer}}; return ;;
{{/leading}}
{{#commands}}
{{#options}}
{{#takes_value}}
    {{name}}:{{typed}}) {{bash_offer}}; return ;;
{{/takes_value}}
{{/options}}
{{/commands}}
  esac

  case $command:$current in
    :-*) _backendgen_words '-h --help -V --version{{#leading}} {{typed}}{{/leading}}' ;;
    :*) _backendgen_words 'help {{names}}' ;;
    help:*) ((count)) || _backendgen_words '{{names}}' ;;
{{#commands}}
    {{name}}:-*) _backendgen_words '{{flags}}' ;;
{{/commands}}
    *)
      case $command:$count in
{{#commands}}
{{#arguments}}
        {{name}}:{{place}}) {{bash_offer}} ;;
{{/arguments}}
{{/commands}}
      esac
      ;;
  esac
}

complete -F _backendgen backendgen
