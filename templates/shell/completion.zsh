#compdef backendgen
# zsh completion for backendgen. Made by `backendgen completion zsh`.

_backendgen() {
  local context state state_descr line ret=1
  typeset -A opt_args
  local -a commands specs
  commands=(
{{#commands}}
    '{{name}}:{{zsh_summary}}'
{{/commands}}
    'help:help for a command'
  )

  _arguments -C -S \
    '(- *)'{-h,--help}'[help]' \
    '(- *)'{-V,--version}'[version of backendgen]' \
{{#leading}}
    {{zsh}} \
{{/leading}}
    '1:command:->command' \
    '*::argument:->argument' && ret=0

  case $state in
    command) _describe -t commands command commands && ret=0 ;;
    argument)
      case $line[1] in
        help) _arguments '1:command:({{names}})' && ret=0 ;;
{{#commands}}
        {{name}})
          specs=(
{{#options}}
            {{zsh}}
{{/options}}
{{#arguments}}
            {{zsh}}
{{/arguments}}
          )
          _arguments $specs && ret=0
          ;;
{{/commands}}
      esac
      ;;
  esac
  return ret
}

# Read from a file of $fpath, it is called at once; by `source`, it is registered.
if [[ $funcstack[1] == _backendgen ]]; then
  _backendgen "$@"
else
  compdef _backendgen backendgen
fi
