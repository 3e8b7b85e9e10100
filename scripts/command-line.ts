import { parseArgs, type ParseArgsConfig } from 'node:util'

/** The options of a script, as `parseArgs` takes them. */
type OptionDefinitions = NonNullable<ParseArgsConfig['options']>

type OptionValues<Given extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ options: Given }>
>['values']

const helpOption = { help: { type: 'boolean' } } as const

/**
 * Parses the command line of a script that takes options only. `--help` prints the help and exits with
 * 0; an unknown argument prints the error and the usage line and exits with 2.
 */
export function parseOptions<const Given extends OptionDefinitions>(
  help: string,
  definitions: Given,
): OptionValues<Given> {
  try {
    const { values } = parseArgs({ options: { ...definitions, ...helpOption } })
    if (!('help' in values)) return values
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(formatUsageError([(error as Error).message], help))
    process.exit(2)
  }
}

/** Parses the command line of a script that takes options and positional arguments; else as `parseOptions`. */
export function parseCommand<const Given extends OptionDefinitions>(
  help: string,
  definitions: Given,
): { values: OptionValues<Given>; positionals: string[] } {
  try {
    const { values, positionals } = parseArgs({
      options: { ...definitions, ...helpOption },
      allowPositionals: true,
    })
    if (!('help' in values)) return { values, positionals }
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(formatUsageError([(error as Error).message], help))
    process.exit(2)
  }
}

/** Parses the command line of a script that takes positional arguments and `--help` only. */
export function parsePositionals(help: string): string[] {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: helpOption })
    if (!('help' in values)) return positionals
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(formatUsageError([(error as Error).message], help))
    process.exit(2)
  }
}

/** The error text for a wrong command line: the faults, and the first line of the help. */
export const formatUsageError = (faults: readonly string[], help: string): string =>
  `${faults.join('\n')}\n\n${help.split('\n', 1)[0]}\nSee --help.\n`
