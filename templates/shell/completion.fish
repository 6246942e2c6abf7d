# fish completion for backendgen. Made by `backendgen completion fish`.

# The command on the line, and how many arguments follow it.
function __backendgen_line
    set -l command
    set -l count 0
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$command:$word"
{{#leading}}
            case '*:{{typed}}'
                set skip 1
{{/leading}}
{{#commands}}
{{#options}}
{{#takes_value}}
            case '{{name}}:{{typed}}'
                set skip 1
{{/takes_value}}
{{/options}}
{{/commands}}
            case '*:-*'
            case ':*'
                set command $word
            case '*'
                set count (math $count + 1)
        end
    end
    echo "$command"
    echo $count
end

# Whether the command is this one and, where a number follows, whether that argument is next; of
# "1+", whether it or a later one is.
function __backendgen_at
    set -l line (__backendgen_line)
    test "$line[1]" = "$argv[1]"; or return 1
    set -q argv[2]; or return 0
    switch $argv[2]
        case '*+'
            test $line[2] -ge (string trim -r -c + -- $argv[2])
        case '*'
            test $line[2] = $argv[2]
    end
end

complete -c backendgen -f
complete -c backendgen -n '__backendgen_at ""' -s h -l help -d 'help'
complete -c backendgen -n '__backendgen_at ""' -s V -l version -d 'version of backendgen'
{{#leading}}
complete -c backendgen -n '__backendgen_at ""' {{fish}}
{{/leading}}
complete -c backendgen -n '__backendgen_at ""' -f -a help -d 'help for a command'
complete -c backendgen -n '__backendgen_at help 0' -f -a '{{names}}'
{{#commands}}
complete -c backendgen -n '__backendgen_at ""' -f -a {{name}} -d '{{fish_summary}}'
{{#options}}
complete -c backendgen -n '__backendgen_at {{name}}' {{fish}}
{{/options}}
{{#arguments}}
complete -c backendgen -n '__backendgen_at {{name}} {{fish_place}}' {{fish_offer}}
{{/arguments}}
{{/commands}}
