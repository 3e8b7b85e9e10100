import { parseArgs, type ParseArgsConfig } from 'node:util'

/** The options of a script, as `parseArgs` takes them. */
type OptionDefinitions = NonNullable<ParseArgsConfig['options']>

type OptionValues<Given extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ options: Given }>
>['values']

const helpOption = { help: { type: 'boolean' } } as const

/**
 * Parses the command line of a script. `--help` prints the help and exits with 0; an unknown argument prints the
 * error and the usage line and exits with 2.
 */
export function parseCommand<const Given extends OptionDefinitions>(
  help: string,
  definitions: Given,
  allowPositionals = true,
  args = process.argv.slice(2),
): { values: OptionValues<Given>; positionals: string[] } {
  try {
    const options = { ...definitions, ...helpOption }
    const { values, positionals } = parseArgs({ args, options, allowPositionals })
    if (!('help' in values)) return { values, positionals }
  } catch (error) {
    exitWithUsage([(error as Error).message], help)
  }
  process.stdout.write(help)
  process.exit(0)
}

/** As `parseCommand`, for a script that takes options only. */
export const parseOptions = <const Given extends OptionDefinitions>(
  help: string,
  definitions: Given,
): OptionValues<Given> => parseCommand(help, definitions, false).values

/** As `parseCommand`, for a script that takes positional arguments and `--help` only. */
export const parsePositionals = (help: string): string[] => parseCommand(help, {}).positionals

/** Prints the faults of a command line and the first line of the help, and exits with 2. */
export function exitWithUsage(faults: readonly string[], help: string): never {
  process.stderr.write(`${faults.join('\n')}\n\n${help.split('\n', 1)[0]}\nSee --help.\n`)
  process.exit(2)
}
